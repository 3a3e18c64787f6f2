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

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t offset) { return mix(seed ^ mix(offset)); }

at::Generator generator_of(std::uint64_t seed, std::uint64_t offset) {
  return at::make_generator<at::CPUGeneratorImpl>(seed_of(seed, offset));
}

}  // namespace

Drawn draw(const std::optional<at::Generator>& given, c10::DeviceIndex device) {
  auto* const cuda = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      given, at::cuda::detail::getDefaultCUDAGenerator(device));
  const std::lock_guard lock(cuda->mutex_);
  const at::PhiloxCudaState state = cuda->philox_cuda_state(4);
  if (!state.captured_) return {generator_of(state.seed_.val, state.offset_.val), {}};
  at::Generator drawn = at::make_generator<at::CPUGeneratorImpl>();
  return {drawn, [=, generator = drawn]() mutable {
            const auto offset = static_cast<std::uint64_t>(*state.offset_.ptr);
            generator.set_current_seed(seed_of(static_cast<std::uint64_t>(*state.seed_.ptr),
                                               offset + state.offset_intragraph_));
          }};
}

}  // namespace ferry::vgpu
