// What copies take of each device's memory, and how fast they let kernels go.
//
// The bytes of running copies come out of the memory's rate, at both ends of a copy between
// devices. A kernel that needs more than what they leave goes on as slowly as that makes it, but at
// least half is left. (Copies go first: links give a few hundredths of that rate.) A device whose
// rate is not known has kernels that nothing slows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/limits.h"
#include "sim/gpu/links.h"

namespace ferry::sim {

class MemoryRates {
 public:
  static constexpr std::int64_t kWhole = 1000;  // a share of 1, and the speed that nothing slows

  // `bytes_per_us`: what kernels get; 0: not known.
  void add_device(std::int64_t bytes_per_us) {
    any_ = any_ || bytes_per_us > 0;
    // No link takes a thousandth of more than the most, and speed() cannot overflow.
    devices_.push_back({.bytes_per_us = std::min(bytes_per_us, limits::kBytesPerUs)});
  }
  bool is_known(std::uint32_t device) const { return devices_[device].bytes_per_us > 0; }

  // Copies on this route take so much more, or less.
  void take(const Route& route, std::int64_t bytes_per_us) {
    if (!any_) return;
    for (const std::uint32_t number : {route.from, route.to}) {
      if (number == Route::kHost || !is_known(number)) continue;
      Device& device = devices_[number];
      device.copies += bytes_per_us;
      if (!std::exchange(device.changed, true)) changed_.push_back(number);
    }
  }

  // Of a kernel that needs the memory for so many thousandths of its time, in thousandths of its
  // speed alone. `share` is not 0.
  std::int64_t speed(std::uint32_t number, std::int64_t share) const {
    const Device& device = devices_[number];
    if (device.copies == 0) return kWhole;
    const std::int64_t left =
        std::max(device.bytes_per_us - device.copies, device.bytes_per_us / 2);
    return std::clamp<std::int64_t>(left * kWhole * kWhole / (share * device.bytes_per_us), 1,
                                    kWhole);
  }

  bool any_changed() const { return !changed_.empty(); }
  // Calls `changed(device)` for each where copies take more or less than at the last call.
  template <class F>
  void each_changed(const F& changed) {
    for (const std::uint32_t number : changed_) {
      devices_[number].changed = false;
      changed(number);
    }
    changed_.clear();
  }

  void add_slowed(std::uint32_t device, Time ns) { devices_[device].slowed_ns += ns; }
  Time slowed_ns(std::uint32_t device) const { return devices_[device].slowed_ns; }

 private:
  struct Device {
    std::int64_t bytes_per_us = 0;
    std::int64_t copies = 0;  // bytes per us of those that run
    Time slowed_ns = 0;       // what they added to kernels
    bool changed = false;
  };

  bool any_ = false;  // of the rates is known
  std::vector<Device> devices_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace ferry::sim
