// How long the work takes that the runtime is given, in the simulated time of a card.
//
// The runtime itself decides when work runs and computes; a clock says when it would be done on the
// card, and how far the program's host would be by then. Without one the runtime knows no time.
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
  std::string_view op{};  // "aten.mm", of a text that stays
};
struct CopyCost {
  CopyKind kind = CopyKind::kDeviceToDevice;
  std::int64_t bytes = 0;
  int peer = 0;            // of kPeer: the other device than the stream's
  std::uint64_t host = 0;  // of a copy from or to the host: where there
  bool pageable = false;   // that memory is not pinned: the host copies it aside, and waits
};
struct Sleep {
  std::int64_t ns = 0;
};
// The first: no time at all, as a host function.
using Cost = std::variant<std::monostate, KernelCost, CopyCost, Sleep>;

// Called under the runtime's lock, and must not call the runtime. The streams' numbers are the
// runtime's, and a stream is always named with the same device.
class Clock {
 public:
  enum class Mark : std::uint32_t {};  // the work that a stream was given so far
  enum class Answer : std::uint8_t { kDone, kNotReady };

  virtual ~Clock() = default;
  // `name`: what it is called in a trace.
  virtual void issue(StreamId stream, int device, const Cost& cost, const char* name) = 0;
  // The program's allocator gave out bytes of the device, or took them back.
  virtual void allocated(int device, std::int64_t change) = 0;
  virtual Mark record(StreamId stream, int device) = 0;
  virtual void release(Mark mark) = 0;  // each once
  virtual void wait(StreamId stream, int device, Mark mark) = 0;

  // The host asks whether it is done, which takes the host some time: by the end of that.
  virtual Answer host_asks(Mark mark) = 0;
  virtual void host_waits(Mark mark) = 0;
  virtual void host_waits(StreamId stream, int device) = 0;  // for all that it was given
  // The program's host computes, with nothing of a device's.
  virtual void host_computes(const KernelCost& cost) = 0;
  // The card goes on until it is done, and says when that is. The host's time stays.
  virtual std::int64_t run_to_end(Mark mark) = 0;
};

}  // namespace ferry::vgpu
