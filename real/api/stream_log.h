// Writes the stream operations of a real run as a log for `ferry check` (formats/STREAM_LOG.md).
//
// Each source asks for the active log when it is constructed, and does nothing if there is none.
// The sources are the offloader's device (real/api/stream_logged.h), LibTorch's ops and the CPU
// allocator (real/log/op_log.h, real/train/memory.h), and the CUDA allocator (real/cuda_backend).
//
// Lines are in the order of the calls to this class, under one lock. The thread that made an
// operation writes its line after the operation; a free is written before it. So the order is right
// for each thread, and between threads wherever one hands work to another.
//
// All computing threads of the CPU are one stream, "compute", as for the core; a wait of any of
// them is a wait of the stream. The threads of a pipeline are separate streams, "compute 0" and so
// on, and their hand-overs order them (real/pipeline/task_log.h). The lanes are "d2h" and "h2d". A
// CUDA stream is named by its handle; the default stream is a legacy one.
//
// malloc may give one thread what another freed. So blocks of a pipeline's threads are in pool
// `async`, and each free waits for all computing threads: the thread that drops the last reference
// comes after all other users, whose work is done.
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

#include "formats/stream_log_write.h"
#include "real/cpu/stream.h"

namespace ferry::real {

// Identifies a stream in this process.
struct StreamKey {
  std::string text;
  StreamKind kind = StreamKind::kNonblocking;
};
StreamKey stream_key(const CpuStream& stream);
StreamKey stream_key(const c10::Stream& stream);
StreamKey cuda_stream_key(const void* handle);

// True if the device has its own pool for the stream, which takes memory from the allocator and
// returns it when the stream is done with it. Such memory is logged in pool `malloc`: nobody can
// use it after its free, as after cudaFree, but others may have used it before its allocation.
inline bool has_own_pool(const CpuStream& stream) { return !stream.is_inline(); }
inline bool has_own_pool(const c10::Stream&) { return false; }

class StreamLog {
 public:
  // commit() makes the file appear. Throws std::system_error if it cannot be made.
  explicit StreamLog(std::filesystem::path file) : file_(std::move(file)) {}

  // While it lives, its log is the active one. Only one may live: a second one throws an Error.
  class Scope;
  static std::shared_ptr<StreamLog> active();  // returns null if there is none

  // The calls below are thread-safe. After commit() nothing is written.

  // Names the stream in the log, unless it is in use already; then it keeps its key as a name. If
  // the name is taken, a number is added.
  void call(const StreamKey& stream, const std::string& name);
  // Returns the id of the stream. The first call declares it in the log.
  StreamId stream(const StreamKey& key);
  EventId new_event();

  // Writes an op of the calling thread. Errors are stored for check() and commit(), because
  // allocators and destructors cannot throw.
  void write(const StreamOp& op) noexcept;

  // Logs a block of an allocator, whose size is remembered until it is freed. Frees of unknown
  // blocks, and blocks without bytes, are not logged.
  void allocated(std::uint64_t address, std::int64_t bytes, StreamId stream) noexcept;
  void freed(std::uint64_t address) noexcept;
  // Logs a block of a pool inside such a block.
  void pool_block(const PoolBlock& block) noexcept;
  // While it lives, allocations of this thread are logged with this step, and as memory for the
  // pool of that stream if there is one.
  class Allocating;
  // While it lives, the calling thread is computing thread `number` of a pipeline.
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
  StreamLogFile file_;
  bool open_ = true;
  std::exception_ptr failed_;
  std::map<std::string, StreamId, std::less<>> streams_;  // by key
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
  std::vector<StreamId> compute_threads_;  // those that are separate streams
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
