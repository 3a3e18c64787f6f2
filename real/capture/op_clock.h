// Measures the ops of a recording.
//
// On the CPU an op is done when it returns: the host's clock around its kernel below autograd is
// its time. On an accelerator two timing events of LibTorch's stand around the op, on the stream
// that is current where it runs, and are read when the recording ends:
//
//   stream   ── stall ── begin ● ── the op's kernels ── ● end ──
//
// The stall keeps the device busy while the host issues what follows, so the time is the device's
// alone: all kernels of the op, with the gaps between them and those to the two events (under a
// microsecond each, which the next kernel of a queue has, too). Whoever links a device registers
// its stall; without one an op that is shorter than its issue seems as long as that. An op that
// itself waits for the device, or that takes longer to issue than the stall lasts, shows that wait.
//
// One thread at a time calls it. Not modelled: work of an op on further streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace ferry::real::capture {

// Keeps the current stream of the device busy for about 200 microseconds.
using Stall = void (*)();
void register_stall(c10::DeviceType type, Stall stall);
// Calls the registered stall; does nothing without one.
void stall(c10::DeviceType type);

class OpClock {
 public:
  // None: host times only.
  explicit OpClock(std::optional<c10::Device> accelerator) : accelerator_(accelerator) {}

  // The state that `end` needs.
  struct Begun {
    std::size_t op = 0;
    std::int64_t host_ns = 0;
  };
  Begun begin();
  // The time on the host's clock, at least 1.
  std::int64_t end(const Begun& begun);

  bool watches(c10::DeviceType type) const { return accelerator_ && accelerator_->type() == type; }
  // Waits for the device. Only then may device_ns be called.
  void finish();
  // The time of an accelerator's op, at least 1.
  std::int64_t device_ns(std::size_t op) const;

 private:
  c10::Stream stream() const;

  std::optional<c10::Device> accelerator_;
  std::deque<std::pair<c10::Event, c10::Event>> events_;
};

}  // namespace ferry::real::capture
