#include "vgpu/operators/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <cstdint>
#include <mutex>
#include <utility>

namespace ferry::vgpu {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

at::Generator draw(const std::optional<at::Generator>& given, c10::DeviceIndex device) {
  auto* const cuda = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      given, at::cuda::detail::getDefaultCUDAGenerator(device));
  const std::lock_guard lock(cuda->mutex_);
  const auto [seed, offset] = cuda->philox_engine_inputs(4);
  return at::make_generator<at::CPUGeneratorImpl>(mix(seed ^ mix(offset)));
}

}  // namespace ferry::vgpu
