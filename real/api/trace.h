// A timeline for a viewer: ops on their threads, copies on their lanes.
//
// LibTorch's RecordFunction reports the ops on the thread of a scope, and on the engine's threads
// for a backward that begins in the scope. Times are nanoseconds of the host's steady clock; a CUDA
// op has the time of its launch. The file has the format of PyTorch's profiler
// (formats/kineto_file.h), with two counters: the bytes that are on the host and not back yet, and
// after each op the bytes that the device's allocator has handed out. On CUDA the caching allocator
// counts these (LibTorch 2.9 or later), on the CPU CountingAllocator, if it is installed.
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

  // The bytes that a device's allocator has handed out, at a time.
  struct Allocated {
    std::uint32_t device = 0;
    std::int64_t at_ns = 0;
    std::int64_t bytes = 0;
  };

  void add(const Span& copy);
  void add(Op op);
  void add(Allocated allocated);
  // Throws std::system_error. An error leaves no partial file.
  void write(const std::filesystem::path& path) const;

 private:
  void write_copies(KinetoFile& file) const;

  mutable std::mutex mutex_;
  std::vector<Span> copies_;
  std::vector<Op> ops_;
  std::vector<Allocated> allocated_;  // the changes for each device
  std::map<std::uint32_t, std::int64_t> last_allocated_;
};

// While it lives, ops of this thread are added to the trace.
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
