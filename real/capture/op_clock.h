// Measures the ops of a recording.
//
// On the CPU an op is done when it returns, so its time is that of the host's clock around its
// kernel below autograd. On an accelerator, two timing events of LibTorch are recorded around the
// op, on the current stream, and read when the recording ends:
//
//   stream   ── stall ── begin ● ── the op's kernels ── ● end ──
//
// The stall keeps the device busy while the host issues the op. So the time is only the device's:
// all kernels of the op, the gaps between them, and the gaps to the two events (each under a
// microsecond, as between any two kernels). The library for a device registers its stall. Without a
// stall, an op that runs shorter than its issue seems to take as long as the issue. If an op itself
// waits for the device, or takes longer to issue than the stall lasts, its time includes that wait.
//
// Only one thread at a time may call it. Work of an op on further streams is not measured.
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
// Calls the registered stall; does nothing if there is none.
void stall(c10::DeviceType type);

class OpClock {
 public:
  // `accelerator` is none for host times only.
  explicit OpClock(std::optional<c10::Device> accelerator) : accelerator_(accelerator) {}

  // The state that `end` needs.
  struct Begun {
    std::size_t op = 0;
    std::int64_t host_ns = 0;
  };
  Begun begin();
  // Returns the time on the host's clock in nanoseconds, at least 1.
  std::int64_t end(const Begun& begun);

  bool watches(c10::DeviceType type) const { return accelerator_ && accelerator_->type() == type; }
  // Waits for the device. device_ns may be called only after this.
  void finish();
  // Returns the time of an accelerator's op in nanoseconds, at least 1.
  std::int64_t device_ns(std::size_t op) const;

 private:
  c10::Stream stream() const;

  std::optional<c10::Device> accelerator_;
  std::deque<std::pair<c10::Event, c10::Event>> events_;
};

}  // namespace ferry::real::capture
