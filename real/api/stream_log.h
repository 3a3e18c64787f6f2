// Writes the stream operations of a real run as a log for `ferry check` (formats/TRACE.md).
//
// Each source asks for the active log when it is constructed, and installs nothing if there is
// none: the offloader's device (real/api/stream_logged.h), LibTorch's ops and the CPU allocator
// (real/log/op_log.h, real/train/memory.h), the CUDA allocator (real/cuda_backend).
//
// The lines are in the order in which the calls come here, under one lock. Each is written by the
// thread that made the call, when it has been made (bytes that go back: before they do), so that
// the order is the host's on every thread, and between threads that of whatever handed over.
//
// The CPU's computing threads are one stream, "compute", as the seam has it: what they did is
// recorded, and a wait there is one of the stream's. But a pipeline's threads are a stream each,
// "compute 0" and so on, which its hand-overs order (real/pipeline/task_log.h). The lanes are "d2h"
// and "h2d". A CUDA stream has its handle for a name, and the default one is legacy.
//
// malloc gives what one thread freed to another. Blocks of a pipeline's threads are therefore of
// pool `async`, and each block's free waits for all computing threads: whoever drops the last
// reference comes after everybody who had one, and what these computed is done.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "formats/trace_write.h"
#include "real/cpu/stream.h"

namespace ferry::real {

// Identifies a stream within the process.
struct StreamKey {
  std::string text;
  StreamKind kind = StreamKind::kNonblocking;
};
StreamKey stream_key(const CpuStream& stream);
StreamKey stream_key(const c10::Stream& stream);
StreamKey cuda_stream_key(const void* handle);

// True if its storages come from a pool of the device's own, which takes memory from the allocator
// and returns it when the stream is done with it. Such memory is logged as pool `malloc`: after its
// free nobody can still use it, as after cudaFree; before its allocation somebody else may have.
inline bool has_own_pool(const CpuStream& stream) { return !stream.is_inline(); }
inline bool has_own_pool(const c10::Stream&) { return false; }

class StreamLog {
 public:
  // The file appears with commit(). Throws std::system_error if it cannot be made.
  explicit StreamLog(std::filesystem::path file) : file_(std::move(file)) {}

  // While it lives, its log is the active one. Only one may live: std::logic_error for a second.
  class Scope;
  static std::shared_ptr<StreamLog> active();  // null if there is none

  // Thread-safe from here on. After commit() nothing is written any more.

  // Names the stream in the log, if it was not asked for yet; else it keeps its key. A name that is
  // taken gets a number.
  void call(const StreamKey& stream, const std::string& name);
  // Declares the stream on first use.
  StreamId stream(const StreamKey& key);
  EventId new_event();

  // Writes an op of the calling thread. Errors are kept for check() and commit(), because
  // allocators and destructors cannot throw.
  void write(const StreamOp& op) noexcept;

  // Blocks of an allocator, whose sizes are remembered until they are freed; frees of unknown
  // blocks are not logged. Blocks without bytes are ignored.
  void allocated(std::uint64_t address, std::int64_t bytes, StreamId stream) noexcept;
  void freed(std::uint64_t address) noexcept;
  // Logs a block of a pool inside such blocks.
  void pool_block(const PoolBlock& block) noexcept;
  // While it lives, the calling thread's allocations are logged as this step's, and as memory for
  // that stream's own pool if it has one.
  class Allocating;
  // The calling thread is computing thread `number` of a pipeline, while it lives.
  class ComputeThread;

  // Throws std::system_error if a line could not be written.
  void check();
  void commit();

 private:
  void write_locked(StreamOp op);
  void hand_over(StreamOp op, StreamId pool);
  void use_everywhere(StreamOp op);
  HostThread thread();
  std::string unused(std::set<std::string>& names, const std::string& name);

  std::mutex mutex_;
  TraceFile file_;
  bool open_ = true;
  std::exception_ptr failed_;
  std::map<std::string, StreamId, std::less<>> streams_;  // indexed by key
  std::map<std::string, std::string, std::less<>> called_;
  std::set<std::string> stream_names_, thread_names_;
  std::map<std::thread::id, HostThread> threads_;
  std::uint32_t events_ = 0;
  struct LiveBlock {
    Range range;
    StreamId stream;
    PoolKind pool;
  };
  std::map<std::uint64_t, LiveBlock> blocks_;
  std::vector<StreamId> compute_threads_;  // that are streams of their own
};

class StreamLog::Scope {
 public:
  explicit Scope(const std::shared_ptr<StreamLog>& log);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();
};

class StreamLog::Allocating {
 public:
  explicit Allocating(Step step, std::optional<StreamId> pool = {});
  Allocating(const Allocating&) = delete;
  Allocating& operator=(const Allocating&) = delete;
  ~Allocating();

 private:
  Step step_;
  std::optional<StreamId> pool_;
};

class StreamLog::ComputeThread {
 public:
  ComputeThread(StreamLog& log, std::size_t number);
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;
  ~ComputeThread();
};

}  // namespace ferry::real
