// Streams and events of a CPU device, as values.
//
// The inline stream stands for every host thread that computes: LibTorch's CPU ops are done when
// they return, so all its work is done. A worker stream is a thread with a queue
// (real/cpu/workers.h).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

namespace ferry::real {

struct CpuStream {
  static constexpr std::int32_t kInline = -1;

  std::uint64_t device = 0;  // the owner of the worker; 0 for the inline stream
  std::int32_t index = kInline;

  bool is_inline() const { return index == kInline; }
  bool operator==(const CpuStream&) const = default;
};

// A block of a worker stream's pool that is handed out or returned.
struct PoolBlock {
  bool out = false;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  CpuStream stream;
};

// Tasks that fail together: their first error, and its position in the stream.
struct Section {
  std::exception_ptr error;
  std::uint64_t failed_at = 0;
};

// Stands for the first `ordinal` tasks of a worker stream. A default event, and one of the inline
// stream, has no work to wait for.
struct CpuEvent {
  CpuStream stream;
  std::uint64_t ordinal = 0;
  std::shared_ptr<const Section> section;  // the section whose error it carries, if any
};

}  // namespace ferry::real
