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

  std::uint64_t device = 0;  // the worker's owner; 0 for the inline stream, which all devices share
  std::int32_t index = kInline;

  bool is_inline() const { return index == kInline; }
  bool operator==(const CpuStream&) const = default;
};

// A block of a worker stream's pool, when it is handed out or returned.
struct PoolBlock {
  bool out = false;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  CpuStream stream;
};

// Tasks that fail together: the first error among them, and its place in the stream.
struct Section {
  std::exception_ptr error;
  std::uint64_t failed_at = 0;
};

// The first `ordinal` tasks of a worker stream. By default, and on the inline stream: no work to
// wait for.
struct CpuEvent {
  CpuStream stream;
  std::uint64_t ordinal = 0;
  std::shared_ptr<const Section> section;  // the section whose error it carries; none: no error
};

}  // namespace ferry::real
