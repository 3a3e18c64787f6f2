// Returns the machine's accelerator, if LibTorch supports it and there is a device. A LibTorch that
// was built for CUDA names CUDA even if there is no device. Recomputes and replays use its streams
// and its autocast state.
#pragma once

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>

namespace ferry::real {

inline std::optional<c10::DeviceType> present_accelerator() {
  const auto accelerator = at::accelerator::getAccelerator();
  if (!accelerator || !c10::impl::hasDeviceGuardImpl(*accelerator)) return std::nullopt;
  if (c10::impl::VirtualGuardImpl(*accelerator).deviceCount() == 0) return std::nullopt;
  return accelerator;
}

}  // namespace ferry::real
