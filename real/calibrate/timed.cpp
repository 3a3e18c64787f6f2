#include "real/calibrate/timed.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "real/tensors/span.h"

namespace ferry::real::calibrate {

void wait_for(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

Timing timed(c10::Device device, std::int64_t rounds, const std::function<void()>& call) {
  constexpr std::int64_t kRoundNs = 20'000'000;
  constexpr std::int64_t kCallsMost = 1000;
  const auto several = [&](std::int64_t calls) {
    wait_for(device);
    const std::int64_t begin = now_ns();
    for (std::int64_t i = 0; i < calls; ++i) call();
    wait_for(device);
    return std::max<std::int64_t>((now_ns() - begin) / calls, 1);
  };
  several(1);
  const std::int64_t calls = std::clamp<std::int64_t>(kRoundNs / several(1), 1, kCallsMost);
  std::vector<std::int64_t> samples;
  for (std::int64_t round = 0; round < rounds; ++round) samples.push_back(several(calls));
  return timing_of(samples);
}

}  // namespace ferry::real::calibrate
