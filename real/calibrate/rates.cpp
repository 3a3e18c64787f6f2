#include "real/calibrate/rates.h"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "real/calibrate/timed.h"
#include "real/capture/op_clock.h"
#include "real/tensors/span.h"

namespace ferry::real::calibrate {
namespace {

// The number of small operators that are issued at once; CUDA's queue holds more.
constexpr std::int64_t kQueued = 300;

Timing issue_time(c10::Device device, const Effort& effort) {
  const at::Tensor x = at::ones({8}, at::device(device)).requires_grad_();
  std::vector<std::int64_t> samples;
  for (std::int64_t round = 0; round <= effort.rounds; ++round) {
    wait_for(device);
    const std::int64_t begin = now_ns();
    for (std::int64_t i = 0; i < kQueued; ++i) static_cast<void>(x * x);
    const std::int64_t ns = (now_ns() - begin) / kQueued;
    if (round > 0) samples.push_back(std::max<std::int64_t>(ns, 1));  // the first round warms up
  }
  wait_for(device);
  return timing_of(samples);
}

// Returns the time of a small kernel in a sequence: between two events of the device, after a stall
// that lasts until all kernels are issued.
std::int64_t kernel_ns(c10::Device device) {
  at::Tensor x = at::ones({8}, at::device(device));
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (device.is_cpu()) {
    const std::int64_t begin = now_ns();
    for (std::int64_t i = 0; i < kQueued; ++i) x.mul_(1);
    return (now_ns() - begin) / kQueued;
  }
  constexpr int kStalls = 20;  // 4 ms in all
  c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  wait_for(device);
  for (int i = 0; i < kStalls; ++i) capture::stall(device.type());
  begin.record(guard.getStream(device));
  for (std::int64_t i = 0; i < kQueued; ++i) x.mul_(1);
  end.record(guard.getStream(device));
  wait_for(device);
  return std::llround(begin.elapsedTime(end) * 1e6) / kQueued;
}

Timing kernel_time(c10::Device device, const Effort& effort) {
  std::vector<std::int64_t> samples;
  for (std::int64_t round = 0; round <= effort.rounds; ++round) {
    const std::int64_t ns = kernel_ns(device);
    if (round > 0) samples.push_back(std::max<std::int64_t>(ns, 1));
  }
  return timing_of(samples);
}

// Returns the bytes that the operation moves.
std::int64_t measure_triad(c10::Device device, const Effort& effort, Timing& time) {
  const std::int64_t elements = effort.small      ? 1 << 16
                                : device.is_cpu() ? std::int64_t{1} << 24
                                                  : std::int64_t{1} << 27;
  const at::Tensor b = at::ones({elements}, at::device(device));
  const at::Tensor c = at::ones({elements}, at::device(device));
  at::Tensor a = at::empty({elements}, at::device(device));
  time = timed(device, effort.rounds, [&] { at::add_out(a, b, c, 3); });
  return 3 * elements * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t side_of(c10::Device device, const Effort& effort) {
  if (effort.small) return 64;
  return device.is_cpu() ? 1024 : 8192;
}

MatmulTime matmul_time(c10::Device device, const Effort& effort, DType dtype, at::ScalarType type) {
  const std::int64_t side = side_of(device, effort);
  const at::Tensor a = at::randn({side, side}, at::device(device)).to(type);
  const at::Tensor b = at::randn({side, side}, at::device(device)).to(type);
  at::Tensor c = at::empty_like(a);
  return {dtype, side, timed(device, effort.rounds, [&] { at::mm_out(c, a, b); })};
}

// Returns none if the device cannot do it. Only some can, and only in this layout: the second
// matrix by columns, the result in bf16.
std::optional<MatmulTime> fp8_time(c10::Device device, const Effort& effort) {
  if (device.is_cpu()) return std::nullopt;
  const std::int64_t side = side_of(device, effort);
  try {
    const at::Tensor a = at::randn({side, side}, at::device(device)).to(at::kFloat8_e4m3fn);
    const at::Tensor b = at::randn({side, side}, at::device(device)).to(at::kFloat8_e4m3fn).t();
    const at::Tensor one = at::ones({}, at::device(device));
    const auto multiply = [&] {
      static_cast<void>(at::_scaled_mm(a, b, one, one, {}, {}, at::kBFloat16, true));
    };
    return MatmulTime{DType::kF8, side, timed(device, effort.rounds, multiply)};
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

// Call it after the measurements of the device.
HostSpeed host_speed(c10::Device device, const Effort& effort, const Measured& measured) {
  if (device.is_cpu()) return {measured.triad, measured.triad_bytes, measured.matmuls.front()};
  HostSpeed host;
  host.triad_bytes = measure_triad(c10::kCPU, effort, host.triad);
  host.matmul = matmul_time(c10::kCPU, effort, DType::kF32, at::kFloat);
  return host;
}

void measure_device_blocks(c10::Device device, const Effort& effort, Measured& measured) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 22;
  const auto allocate = [&] {
    static_cast<void>(at::empty({kBytes}, at::device(device).dtype(at::kByte)));
  };
  measured.allocations.push_back(
      {"device block, cached", kBytes, timed(device, effort.rounds, allocate)});
  // LibTorch's CPU allocator caches nothing.
  if (device.is_cpu()) return;
  std::vector<std::int64_t> fresh;
  for (std::int64_t round = 0; round < effort.rounds; ++round) {
    wait_for(device);
    at::getDeviceAllocator(device.type())->emptyCache();
    const std::int64_t begin = now_ns();
    allocate();
    fresh.push_back(std::max<std::int64_t>(now_ns() - begin, 1));
  }
  measured.allocations.push_back({"device block, fresh", kBytes, timing_of(fresh)});
}

}  // namespace

void measure_rates(c10::Device device, const Effort& effort, Measured& measured) {
  measured.issue = issue_time(device, effort);
  const at::NoGradGuard no_grad;
  measured.kernel = kernel_time(device, effort);
  measured.triad_bytes = measure_triad(device, effort, measured.triad);
  measured.matmuls.push_back(matmul_time(device, effort, DType::kF32, at::kFloat));
  measured.matmuls.push_back(matmul_time(device, effort, DType::kBF16, at::kBFloat16));
  measured.matmuls.push_back(matmul_time(device, effort, DType::kF64, at::kDouble));
  if (const auto fp8 = fp8_time(device, effort)) measured.matmuls.push_back(*fp8);
  measured.host = host_speed(device, effort, measured);
  measure_device_blocks(device, effort, measured);
}

}  // namespace ferry::real::calibrate
