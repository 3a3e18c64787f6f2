// The interface of a clock: how long the runtime's work takes in the simulated time of a card.
//
// The runtime itself decides when work runs and what it computes. A clock says when the card would
// be done with it, and how far the program's host would have come by then. vgpu/time/timeline.h
// implements it. Without a clock the runtime knows no card time.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/program.h"
#include "formats/stream_op.h"

namespace ferry::vgpu {

struct KernelCost {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;  // read and written
  DType computes_in = DType::kF32;
  std::int64_t kernels = 1;
  std::vector<MatrixProduct> products{};
  std::string_view op{};  // "aten.mm"; the text must outlive the queued work
};
struct CopyCost {
  CopyKind kind = CopyKind::kDeviceToDevice;
  std::int64_t bytes = 0;
  int peer = 0;            // for kPeer: the device at the other end
  std::uint64_t host = 0;  // the address on the host, as logged, if one end is there
  bool pageable = false;   // the host memory is not pinned: the host stages the copy and waits
};
struct Sleep {
  std::int64_t ns = 0;
};
// std::monostate is work that takes no time, such as a host function.
using Cost = std::variant<std::monostate, KernelCost, CopyCost, Sleep>;

// The runtime calls its clock under its lock, and the clock must not call the runtime. Streams have
// the runtime's numbers, and a stream is always named with the same device.
class Clock {
 public:
  enum class Mark : std::uint32_t {};  // the work that a stream was given so far
  enum class Answer : std::uint8_t { kDone, kNotReady };

  virtual ~Clock() = default;
  // `name` is the label of the work in a trace.
  virtual void issue(StreamId stream, int device, const Cost& cost, const char* name) = 0;
  // A graph is launched: all work issued between the two costs the host one launch.
  virtual void begin_graph(StreamId stream, int device) = 0;
  virtual void end_graph() = 0;
  // The program's allocator gave out `change` bytes of the device or, if negative, took them back.
  virtual void allocated(int device, std::int64_t change) = 0;
  virtual Mark record(StreamId stream, int device) = 0;
  virtual void release(Mark mark) = 0;  // call it once for each mark
  virtual void wait(StreamId stream, int device, Mark mark) = 0;

  // Asks whether the marked work is done. Asking takes the host some time, and the answer is for
  // the end of that time.
  virtual Answer host_asks(Mark mark) = 0;
  virtual void host_waits(Mark mark) = 0;
  virtual void host_waits(StreamId stream, int device) = 0;  // for all work of the stream so far
  // The program's host computes something itself, without a device.
  virtual void host_computes(const KernelCost& cost) = 0;
  // How long the work takes on a card that does nothing else, in nanoseconds. Issues nothing.
  virtual std::int64_t duration(const Cost& cost) const = 0;
  // Runs the card until the marked work is done, and returns that time in nanoseconds. The host's
  // time does not change.
  virtual std::int64_t run_to_end(Mark mark) = 0;
};

}  // namespace ferry::vgpu
