// A CPU device's streams and events, as values.
//
// The inline stream stands for every host thread that computes: LibTorch's CPU ops are done when
// they return, so what was given to it is done. A worker stream is a thread with a queue of its own
// (real/cpu/workers.h).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

namespace ferry::real {

struct CpuStream {
  static constexpr std::int32_t kInline = -1;

  std::uint64_t device = 0;  // whose worker it is; 0 for the inline stream, which is everybody's
  std::int32_t index = kInline;

  bool is_inline() const { return index == kInline; }
  bool operator==(const CpuStream&) const = default;
};

// A block of a worker stream's pool that is handed out, or comes back.
struct PoolBlock {
  bool out = false;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  CpuStream stream;
};

// What fails together: the first error of these tasks, and where in the stream it was.
struct Section {
  std::exception_ptr error;
  std::uint64_t failed_at = 0;
};

// The first `ordinal` tasks of a worker stream. Default, and of the inline stream: nothing is left
// to wait for.
struct CpuEvent {
  CpuStream stream;
  std::uint64_t ordinal = 0;
  std::shared_ptr<const Section> section;  // whose error it carries; none: it carries none
};

}  // namespace ferry::real
