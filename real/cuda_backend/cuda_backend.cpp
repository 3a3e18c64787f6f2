// CUDA for Offload and for the times of captures. It registers itself when a program that links it
// starts.
#include <ATen/Context.h>
#include <c10/cuda/CUDAAllocatorConfig.h>

#include <memory>
#include <utility>

#include "real/api/device_offloaders.h"
#include "real/api/device_wards.h"
#include "real/capture/op_clock.h"
#include "real/cuda/cuda_device.h"
#include "real/cuda_backend/allocations.h"
#include "real/cuda_backend/stall.h"

namespace ferry::real {
namespace {

DeviceOffloader make_cuda(c10::Device on, const OffloadOptions&, CoreOptions core,
                          SpanObserver observer) {
  TORCH_CHECK(at::globalContext().hasCUDA(), "no CUDA device can be used here");
  CudaDevice device({.index = on.index()});
  if (observer) device.set_observer(std::move(observer));
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log) log_allocations();
  return make_offloader_on(std::move(device), std::move(core), log);
}

std::shared_ptr<StreamLog> log_of_cuda() {
  TORCH_CHECK(at::globalContext().hasCUDA(), "no CUDA device can be used here");
  std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log) log_allocations();
  return log;
}

std::unique_ptr<DeviceWards> make_cuda_wards(c10::Device on, WardOptions options) {
  return make_wards_on(CudaDevice({.index = on.index()}), std::move(options), log_of_cuda());
}

std::shared_ptr<DeviceWeights> make_cuda_weights(c10::Device on, WardOptions options) {
  return make_weights_on(CudaDevice({.index = on.index()}), std::move(options), log_of_cuda());
}

// LibTorch 2.8 to 2.12 know only this name for the settings; later versions mark it as deprecated.
std::string settings_of_allocator() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig::last_allocator_settings();
#pragma GCC diagnostic pop
}

[[maybe_unused]] const bool at_load = [] {
  register_offloader(c10::DeviceType::CUDA, &make_cuda);
  register_wards(c10::DeviceType::CUDA, {&make_cuda_wards, &make_cuda_weights});
  register_allocator(c10::DeviceType::CUDA, &settings_of_allocator);
  capture::register_stall(c10::DeviceType::CUDA, &stall_current_stream);
  return true;
}();

}  // namespace
}  // namespace ferry::real

// Referring to this name (--undefined) makes the linker include this file.
extern "C" void ferry_link_cuda_backend() {}
