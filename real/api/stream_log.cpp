#include "real/api/stream_log.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

std::mutex& active_mutex() {
  static std::mutex* const mutex = new std::mutex;  // storages may be dropped after main()
  return *mutex;
}
std::shared_ptr<StreamLog>& active_log() {
  static auto* const log = new std::shared_ptr<StreamLog>;
  return *log;
}

thread_local Step allocating_step = Step::kUser;
thread_local std::optional<StreamId> allocating_pool;
thread_local std::optional<std::size_t> compute_thread;

// Returns LibTorch's name for the stream. Version 2.8 has none for generic streams.
template <class Stream>
void* handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    TORCH_CHECK(false, "ferry: a stream log of ", stream.device(), " needs a later LibTorch");
  }
}

std::string thread_name() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

}  // namespace

StreamKey stream_key(const CpuStream& stream) {
  if (stream.is_inline()) {
    return {compute_thread ? "compute " + std::to_string(*compute_thread) : "compute"};
  }
  return {"worker " + std::to_string(stream.index) + " of CPU device " +
          std::to_string(stream.device)};
}

StreamKey stream_key(const c10::Stream& stream) {
  return stream.device().is_cpu() ? stream_key(CpuStream()) : cuda_stream_key(handle_of(stream));
}

StreamKey cuda_stream_key(const void* handle) {
  if (handle == nullptr) return {"default", StreamKind::kLegacy};
  return {"stream " + std::to_string(reinterpret_cast<std::uintptr_t>(handle))};
}

std::shared_ptr<StreamLog> StreamLog::active() {
  const std::lock_guard lock(active_mutex());
  return active_log();
}

StreamLog::Scope::Scope(const std::shared_ptr<StreamLog>& log) {
  const std::lock_guard lock(active_mutex());
  if (active_log()) throw torch_error(Error("another stream log is being written in this process"));
  active_log() = log;
}

StreamLog::Scope::~Scope() {
  const std::lock_guard lock(active_mutex());
  active_log() = nullptr;
}

StreamLog::Allocating::Allocating(Step step, std::optional<StreamId> pool)
    : step_(std::exchange(allocating_step, step)), pool_(std::exchange(allocating_pool, pool)) {}

StreamLog::Allocating::~Allocating() {
  allocating_step = step_;
  allocating_pool = pool_;
}

StreamLog::ComputeThread::ComputeThread(StreamLog& log, std::size_t number) {
  compute_thread = number;
  const StreamId own = log.stream(stream_key(CpuStream()));
  const std::lock_guard lock(log.mutex_);
  auto& all = log.compute_threads_;
  if (std::find(all.begin(), all.end(), own) == all.end()) all.push_back(own);
}

StreamLog::ComputeThread::~ComputeThread() { compute_thread.reset(); }

void StreamLog::call(const StreamKey& stream, const std::string& name) {
  const std::lock_guard lock(mutex_);
  called_.emplace(stream.text, name);
}

StreamId StreamLog::stream(const StreamKey& key) {
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] =
      streams_.try_emplace(key.text, StreamId{static_cast<std::uint32_t>(streams_.size())});
  if (!fresh) return found->second;
  const auto called = called_.find(key.text);
  const std::string& name = called == called_.end() ? key.text : called->second;
  file_.text().call(found->second, unused(stream_names_, name));
  StreamOp op;
  op.kind = StreamOpKind::kStream;
  op.stream = found->second;
  op.stream_kind = key.kind;
  write_locked(op);
  return found->second;
}

EventId StreamLog::new_event() {
  const std::lock_guard lock(mutex_);
  return EventId{++events_};  // 0 means never recorded
}

void StreamLog::write(const StreamOp& op) noexcept {
  const std::lock_guard lock(mutex_);
  write_locked(op);
}

void StreamLog::allocated(std::uint64_t address, std::int64_t bytes, StreamId stream) noexcept {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  StreamOp op;
  op.kind = StreamOpKind::kAlloc;
  op.step = allocating_step;
  op.range = {address, static_cast<std::uint64_t>(bytes)};
  op.stream = stream;
  if (compute_thread) op.pool = PoolKind::kAsync;
  if (allocating_pool) {
    hand_over(op, *allocating_pool);
    op.pool = PoolKind::kMalloc;
  }
  try {
    blocks_.insert_or_assign(address, LiveBlock{op.range, op.stream, op.pool});
  } catch (...) {
    failed_ = std::current_exception();
  }
  write_locked(op);
}

// Bytes that ops of a stream used go to the pool of another stream, because these ops are done. The
// log shows this as a pool that had the bytes and waits for the stream.
void StreamLog::hand_over(StreamOp op, StreamId pool) {
  const StreamId stream = op.stream;
  op.pool = PoolKind::kAsync;
  op.stream = pool;
  write_locked(op);
  op.kind = StreamOpKind::kRecordUse;
  op.stream = stream;
  write_locked(op);
  op.kind = StreamOpKind::kFree;
  op.stream = pool;
  write_locked(op);
}

void StreamLog::freed(std::uint64_t address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return;
  StreamOp op;
  op.kind = StreamOpKind::kFree;
  op.range = block->second.range;
  op.stream = block->second.stream;
  op.pool = block->second.pool;
  blocks_.erase(block);
  use_everywhere(op);
  write_locked(op);
}

void StreamLog::use_everywhere(StreamOp op) {
  if (compute_threads_.empty()) return;
  op.kind = StreamOpKind::kRecordUse;
  for (const StreamId stream : compute_threads_) {
    op.stream = stream;
    write_locked(op);
  }
  const auto others = streams_.find("compute");
  if (others == streams_.end()) return;
  op.stream = others->second;
  write_locked(op);
}

void StreamLog::pool_block(const PoolBlock& block) noexcept {
  StreamOp op;
  op.kind = block.out ? StreamOpKind::kAlloc : StreamOpKind::kFree;
  op.step = block.out ? allocating_step : Step::kUser;
  op.range = {block.address, static_cast<std::uint64_t>(block.bytes)};
  op.stream = stream(stream_key(block.stream));
  write(op);
}

void StreamLog::check() {
  const std::lock_guard lock(mutex_);
  if (failed_) std::rethrow_exception(failed_);
}

void StreamLog::commit() {
  check();
  const std::lock_guard lock(mutex_);
  open_ = false;
  file_.commit();
}

void StreamLog::write_locked(StreamOp op) {
  if (!open_ || failed_) return;
  try {
    op.thread = thread();
    file_.write(op);
  } catch (...) {
    failed_ = std::current_exception();
  }
}

// The first thread that writes is the default one.
HostThread StreamLog::thread() {
  const auto [found, fresh] = threads_.try_emplace(
      std::this_thread::get_id(), HostThread{static_cast<std::uint32_t>(threads_.size())});
  if (fresh) file_.text().call(found->second, unused(thread_names_, thread_name()));
  return found->second;
}

std::string StreamLog::unused(std::set<std::string>& names, const std::string& name) {
  std::string free = name;
  for (int i = 2; !names.insert(free).second; ++i) free = name + " " + std::to_string(i);
  return free;
}

}  // namespace ferry::real
