// A timeline for viewing: ops on their threads, copies on their lanes.
//
// Ops are seen through LibTorch's RecordFunction on the thread of a scope and on the engine's
// threads for a backward begun in it. Times are nanoseconds of the host's steady clock; a CUDA op's
// is that of its launch. The file is as PyTorch's profiler writes it (formats/kineto_file.h), with
// two counters: of the bytes that went to the host and are not back, and, after each op, of what a
// device's allocator has given out. On CUDA that is the caching allocator's own count (LibTorch 2.9
// or later); on a CPU CountingAllocator's, where it is installed.
#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "formats/kineto_file.h"
#include "real/tensors/span.h"

namespace ferry::real {

class Trace {
 public:
  struct Op {
    std::string name;
    std::uint64_t thread = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  // What a device's allocator has given out, at a time.
  struct Allocated {
    std::uint32_t device = 0;
    std::int64_t at_ns = 0;
    std::int64_t bytes = 0;
  };

  void add(const Span& copy);
  void add(Op op);
  void add(Allocated allocated);
  // Throws std::system_error; it never leaves half a file.
  void write(const std::filesystem::path& path) const;

 private:
  void write_copies(KinetoFile& file) const;

  mutable std::mutex mutex_;
  std::vector<Span> copies_;
  std::vector<Op> ops_;
  std::vector<Allocated> allocated_;  // of each device, its changes
  std::map<std::uint32_t, std::int64_t> last_allocated_;
};

// While it lives, ops of this thread go to the trace.
class OpTraceScope {
 public:
  explicit OpTraceScope(std::shared_ptr<Trace> trace);
  OpTraceScope(const OpTraceScope&) = delete;
  OpTraceScope& operator=(const OpTraceScope&) = delete;
  ~OpTraceScope();

 private:
  c10::DebugInfoGuard slot_;
  at::CallbackHandle callback_;
};

}  // namespace ferry::real
