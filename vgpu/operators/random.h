// Random numbers: of a CUDA generator's state, drawn by a CPU generator.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <optional>

namespace ferry::vgpu {

// A CPU generator for one operator, seeded from the CUDA generator's seed and offset, which then
// advances. None given: the device's default generator.
at::Generator draw(const std::optional<at::Generator>& given, c10::DeviceIndex device);

}  // namespace ferry::vgpu
