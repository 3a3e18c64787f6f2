#include "real/cpu/cpu_device.h"

#include <c10/core/CPUAllocator.h>

#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "real/cpu/blocks.h"
#include "real/cpu/malloc_thresholds.h"
#include "real/cpu/workers.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {

namespace {

thread_local CpuStream thread_stream;

void check(const CpuDeviceOptions& options) {
  const auto not_negative = [](const char* name, std::int64_t value) {
    if (value < 0) {
      throw torch_error(
          ValueError(std::string(name) + " should be at least 0 but is " + std::to_string(value)));
    }
  };
  not_negative("host_bytes_max", options.host_bytes_max);
  not_negative("host_cache_bytes_max", options.host_cache_bytes_max);
  not_negative("pool_cache_bytes_max", options.pool_cache_bytes_max);
  not_negative("brief_bytes_max", options.brief_bytes_max);
}

// A copy must lie inside its storage; otherwise the caller has a bug.
void check_range(std::int64_t begin, std::int64_t bytes, const c10::Storage& storage) {
  const std::int64_t size = TorchTensors::bytes(storage);
  TORCH_CHECK(begin >= 0 && bytes <= size - begin, "a copy of ", bytes, " bytes from ", begin,
              " on leaves a storage of ", size, " bytes");
}

// The host tier does not know LibTorch. This converts its errors to LibTorch's.
template <class Call>
decltype(auto) with_errors(Call&& call) {
  return with_torch_errors<DiskFull, DiskError, OutOfHostMemory>(std::forward<Call>(call));
}

}  // namespace

// The parts of the device. The destructor drains the workers before it destroys what their tasks
// use.
struct CpuDevice::State {
  explicit State(const CpuDeviceOptions& options)
      : workers(options.pace, [this] { collect(); }),
        out(workers.add("ferry-d2h", Workers::Failure::kAlone)),
        back(workers.add("ferry-h2d", Workers::Failure::kAlone)),
        janitor(workers.add("ferry-janitor", Workers::Failure::kAlone, /*paced=*/false)),
        blocks(workers, janitor, options.pool_cache_bytes_max, options.pool_observer),
        host(workers,
             {options.host_bytes_max, options.host_cache_bytes_max, options.disk, options.disk_io}),
        brief_bytes_max(options.brief_bytes_max) {}
  ~State() { workers.stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Runs on the thread that drops the last reference. A worker cannot wait for its own end, so
  // another thread does it. A child of fork has no workers to wait for, so it leaks its copy.
  static void destroy(State* state) {
    if (state->workers.forked()) return;
    if (!state->workers.mine()) {
      delete state;
      return;
    }
    std::thread([state] { delete state; }).detach();
  }

  void collect() noexcept {
    blocks.collect();
    host.collect();
  }

  template <class Copy>
  void timed(Step step, Lane lane, const HostBlock& block, Copy copy) {
    const std::int64_t begin_ns = now_ns();
    with_errors(copy);
    const Span span{step, lane, block.bytes, begin_ns, now_ns(), &block};
    const std::lock_guard lock(observer_mutex);
    if (observer) observer(span);
  }

  bool is_brief(std::int64_t bytes) const { return !host.disk() && bytes <= brief_bytes_max; }

  // Runs the task here, or gives it to a worker.
  void give(const CpuStream& stream, Workers::Task task) {
    if (stream.is_inline()) {
      task.run();
    } else {
      workers.give(stream, std::move(task));
    }
  }

  Workers workers;
  const CpuStream out;
  const CpuStream back;
  const CpuStream janitor;
  Blocks blocks;
  HostTier host;
  const std::int64_t brief_bytes_max;
  std::mutex observer_mutex;
  SpanObserver observer;
};

CpuDevice::CpuDevice(CpuDeviceOptions options) {
  check(options);
  if (options.disk && options.fix_malloc) fix_malloc_thresholds();
  State* const state = with_errors([&] { return new State(options); });
  state_ = std::shared_ptr<State>(state, &State::destroy);
}

// --- Streams

CpuStream CpuDevice::current_stream() const {
  return thread_stream.device == state_->workers.id() ? thread_stream : Stream();
}

CpuStream CpuDevice::lane(Lane lane) const {
  return lane == Lane::kDeviceToHost ? state_->out : state_->back;
}

CpuEvent CpuDevice::record(Step, const Stream& stream) {
  return stream.is_inline() ? Event() : state_->workers.record(stream);
}

void CpuDevice::wait(Step, const Stream& stream, const Event& event) {
  if (stream.is_inline()) {
    state_->workers.wait(event);
  } else {
    state_->workers.wait(stream, event);
  }
}

CpuStream CpuDevice::new_stream(const std::string& name) {
  return state_->workers.add("ferry-" + name, Workers::Failure::kTogether);
}

void CpuDevice::enqueue(const Stream& stream, std::function<void()> kernel) {
  state_->give(stream, {std::move(kernel)});
}

void CpuDevice::finish() noexcept {
  state_->workers.finish();
  state_->collect();
  state_->workers.finish();  // the janitor has what was collected
}

CpuStreamGuard::CpuStreamGuard(const CpuStream& stream)
    : before_(std::exchange(thread_stream, stream)) {}

CpuStreamGuard::~CpuStreamGuard() { thread_stream = before_; }

// --- Storages

c10::Storage CpuDevice::allocate(Step, std::int64_t bytes, const Stream& stream) {
  at::Allocator* const allocator = c10::GetCPUAllocator();
  const auto size = static_cast<std::size_t>(bytes);
  const auto memory = [&] {
    return stream.is_inline() ? allocator->allocate(size)
                              : state_->blocks.allocate(bytes, stream, state_);
  };
  at::DataPtr pointer;
  try {
    pointer = memory();
  } catch (const c10::Error&) {
    if (!state_->blocks.relieve()) throw;
    pointer = memory();
  }
  return {Storage::use_byte_size_t(), size, std::move(pointer), allocator, /*resizable=*/true};
}

void CpuDevice::record_use(Step, const Storage& storage, const Stream& stream) {
  if (stream.is_inline()) return;  // its work is done
  state_->blocks.record_use(*storage.unsafeGetStorageImpl(), stream, state_);
}

std::optional<CpuStream> CpuDevice::owner(const Storage& storage) const {
  return state_->blocks.owner(*storage.unsafeGetStorageImpl()).value_or(Stream());
}

bool CpuDevice::on_device(const Tensor& tensor) const {
  if (!tensor.defined() || !tensor.device().is_cpu()) return false;
  const std::lock_guard lock(Blocks::deleters());
  return plain(tensor);
}

// --- Host bytes and copies

CpuDevice::HostBuffer::HostBuffer(std::shared_ptr<State> state, HostBlock* block)
    : state_(std::move(state)), block_(block) {}

CpuDevice::HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : state_(std::move(other.state_)), block_(std::exchange(other.block_, nullptr)) {}

CpuDevice::HostBuffer& CpuDevice::HostBuffer::operator=(HostBuffer&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  state_ = std::move(other.state_);
  block_ = std::exchange(other.block_, nullptr);
  return *this;
}

CpuDevice::HostBuffer::~HostBuffer() { give_back(); }

std::uint64_t CpuDevice::HostBuffer::address() const {
  if (!block_) return 0;
  if (block_->memory) return reinterpret_cast<std::uint64_t>(block_->memory.get());
  return kFileAddresses + static_cast<std::uint64_t>(block_->slot.offset);
}

void CpuDevice::HostBuffer::give_back() noexcept {
  HostBlock* const block = std::exchange(block_, nullptr);
  const std::shared_ptr<State> state = std::move(state_);
  if (!block) return;
  std::vector<CpuEvent> everything;
  try {
    everything = state->workers.latest();
  } catch (const std::bad_alloc&) {
    state->workers.finish();
  }
  state->host.release(block, everything);
}

CpuDevice::HostBuffer CpuDevice::allocate_host(Step, std::int64_t bytes, HostMemory) {
  return {state_, with_errors([&] { return state_->host.allocate(bytes); })};
}

void CpuDevice::release_host(Step, HostBuffer&& host, std::span<const Event> events) noexcept {
  HostBlock* const block = std::exchange(host.block_, nullptr);
  const std::shared_ptr<State> state = std::move(host.state_);
  if (block) state->host.release(block, events);
}

HostUsage CpuDevice::host_usage() const { return state_->host.usage(); }

void CpuDevice::offload(Step step, const Storage& storage, std::int64_t begin,
                        const HostBuffer& host, const Stream& stream) {
  // The task does not hold the storage, which would change its use count: the state lives until the
  // workers are drained, and the caller keeps the storage. The pin keeps its bytes, because a
  // program may resize the storage or set its pointer during the copy.
  State* const state = state_.get();
  HostBlock* const block = host.block_;
  check_range(begin, block->bytes, storage);
  if (!stream.is_inline()) {
    state->blocks.pin(storage, stream, state_);
  }
  const char* const from = static_cast<const char*>(storage.data()) + begin;
  const auto copy = [=] {
    state->timed(step, Lane::kDeviceToHost, *block, [=] { state->host.write(*block, from); });
  };
  const auto skipped = [=](const std::exception_ptr& error) { state->host.spoil(*block, error); };
  state->give(stream, {copy, skipped, state->is_brief(block->bytes)});
}

void CpuDevice::reload(Step step, const HostBuffer& host, const Storage& storage,
                       const Stream& stream) {
  State* const state = state_.get();
  const HostBlock* const block = host.block_;
  check_range(0, block->bytes, storage);
  void* const to = storage.mutable_data();
  const auto copy = [=] {
    state->timed(step, Lane::kHostToDevice, *block, [=] { state->host.read(*block, to); });
  };
  state->give(stream, {copy, /*skipped=*/{}, state->is_brief(block->bytes)});
}

// --- Reports

void CpuDevice::set_observer(SpanObserver observer) {
  const std::lock_guard lock(state_->observer_mutex);
  state_->observer = std::move(observer);
}

CpuDeviceUsage CpuDevice::usage() const {
  return {state_->host.in_use_bytes(),   state_->host.cached_bytes(), state_->blocks.in_use_bytes(),
          state_->blocks.cached_bytes(), state_->blocks.deferred(),   state_->workers.tasks()};
}

}  // namespace ferry::real
