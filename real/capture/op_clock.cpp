#include "real/capture/op_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "real/tensors/span.h"

namespace ferry::real::capture {
namespace {

constexpr std::size_t kDeviceTypes = static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES);
std::atomic<Stall>& stall_of(c10::DeviceType type) {
  static std::array<std::atomic<Stall>, kDeviceTypes> stalls{};
  return stalls[static_cast<std::size_t>(type)];
}

}  // namespace

void register_stall(c10::DeviceType type, Stall stall) { stall_of(type) = stall; }

void stall(c10::DeviceType type) {
  if (const Stall known = stall_of(type)) known();
}

c10::Stream OpClock::stream() const {
  return c10::impl::VirtualGuardImpl(accelerator_->type()).getStream(*accelerator_);
}

OpClock::Begun OpClock::begin() {
  Begun begun{.op = events_.size()};
  if (accelerator_) {
    constexpr auto kTimed = c10::EventFlag::BACKEND_DEFAULT;
    events_.emplace_back(c10::Event(accelerator_->type(), kTimed),
                         c10::Event(accelerator_->type(), kTimed));
    stall(accelerator_->type());
    events_.back().first.record(stream());
  }
  begun.host_ns = now_ns();
  return begun;
}

std::int64_t OpClock::end(const Begun& begun) {
  const std::int64_t host_ns = now_ns() - begun.host_ns;
  if (accelerator_) events_[begun.op].second.record(stream());
  return std::max<std::int64_t>(host_ns, 1);
}

void OpClock::finish() {
  if (!accelerator_) return;
  c10::impl::VirtualGuardImpl(accelerator_->type()).synchronizeDevice(accelerator_->index());
}

std::int64_t OpClock::device_ns(std::size_t op) const {
  const auto& [begin, end] = events_[op];
  const double milliseconds = begin.elapsedTime(end);
  return std::max<std::int64_t>(std::llround(milliseconds * 1e6), 1);
}

}  // namespace ferry::real::capture
