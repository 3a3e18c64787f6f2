// Computes how much of each device's memory rate copies take, and how much that slows kernels.
//
// The bytes of running copies are subtracted from the memory's rate, at both ends of a copy between
// devices. A kernel that needs more than the rest is slowed accordingly, but kernels keep at least
// half of the rate. (Copies go first, because links carry only a few hundredths of that rate.) If a
// device's rate is not known, nothing slows its kernels.
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
  static constexpr std::int64_t kWhole = 1000;  // a share of 1, and the full speed

  // `bytes_per_us`: the memory rate for kernels; 0: not known.
  void add_device(std::int64_t bytes_per_us) {
    any_ = any_ || bytes_per_us > 0;
    // Real links carry less than a thousandth of this limit, which keeps speed() from overflowing.
    devices_.push_back({.bytes_per_us = std::min(bytes_per_us, limits::kBytesPerUs)});
  }
  bool is_known(std::uint32_t device) const { return devices_[device].bytes_per_us > 0; }

  // Running copies on this route now take so much more, or less.
  void take(const Route& route, std::int64_t bytes_per_us) {
    if (!any_) return;
    for (const std::uint32_t number : {route.from, route.to}) {
      if (number == Route::kHost || !is_known(number)) continue;
      Device& device = devices_[number];
      device.copies += bytes_per_us;
      if (!std::exchange(device.changed, true)) changed_.push_back(number);
    }
  }

  // Returns a kernel's speed in thousandths of its full speed. The kernel needs the memory for
  // `share` thousandths of its time; `share` is not 0.
  std::int64_t speed(std::uint32_t number, std::int64_t share) const {
    const Device& device = devices_[number];
    if (device.copies == 0) return kWhole;
    const std::int64_t left =
        std::max(device.bytes_per_us - device.copies, device.bytes_per_us / 2);
    return std::clamp<std::int64_t>(left * kWhole * kWhole / (share * device.bytes_per_us), 1,
                                    kWhole);
  }

  bool any_changed() const { return !changed_.empty(); }
  // Calls `changed(device)` for each device where copies take more or less than at the last call.
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
    std::int64_t copies = 0;  // bytes per us of running copies
    Time slowed_ns = 0;       // time that copies added to kernels
    bool changed = false;
  };

  bool any_ = false;  // some device's rate is known
  std::vector<Device> devices_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace ferry::sim
