// What tests tell the virtual GPU, and ask of it.
#include "vgpu/runtime/control.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

std::atomic<FindPlace> place_finder = nullptr;

}  // namespace

void reset() {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.broken = cudaSuccess;
  runtime.failures.clear();
  runtime.listener = nullptr;
  runtime.run_everything();
  runtime.set_tempo(Tempo::kEager, 0);
  runtime.device_bytes_max = runtime.pinned_bytes_max = std::int64_t{256} << 20;
  runtime.context_bytes = 0;
  runtime.wrong_frees = 0;
  const auto [device, default_streams] = std::pair(thread().device, thread().default_streams);
  thread() = Thread{.device = device, .default_streams = default_streams};
}

void run_everything() {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.run_everything();
}

void set_tempo(Tempo tempo, std::uint64_t seed) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.set_tempo(tempo, seed);
}

void set_tempo(cudaStream_t stream, Tempo tempo) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.set_tempo(runtime.stream(stream), tempo);
}

void set_listener(Listener* listener) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.listener = listener;
}

void change_listener(const std::function<Listener*()>& change) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.listener = change();
}

void set_values(KernelValues values) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.values = values;
}

KernelValues values() {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return runtime.values;
}

bool is_known(Range range) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return runtime.values == KernelValues::kComputed || runtime.known_bytes.contains(range);
}

void set_clock(Clock* clock, bool answers) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.clock = clock;
  runtime.clock_answers = clock != nullptr && answers;
}

void with_clock(const std::function<void()>& call) {
  const std::lock_guard lock(Runtime::get().mutex);
  call();
}

void set_step(Step step) { thread().step = step; }

void note_block(BlockIs is, int device, const void* block, std::size_t bytes, cudaStream_t stream) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  const bool given_out = is == BlockIs::kGivenOut;
  StreamOp op;
  op.kind = given_out ? StreamOpKind::kAlloc : StreamOpKind::kFree;
  op.stream = runtime.stream(stream, device).id;
  op.range = runtime.range(block, bytes);
  if (is == BlockIs::kReturned) return runtime.begin_free(op, "libc10_cuda");
  if (given_out || !runtime.completes_free(op.range)) runtime.tell(op);
  const auto change = static_cast<std::int64_t>(bytes);
  if (runtime.clock != nullptr) runtime.clock->allocated(device, given_out ? change : -change);
}

// The allocator says none of this under its lock. So between a block's return and the word that it
// is free, another thread may have been given it: the free is told then, before the block's next
// life, and the word that comes late is dropped.
void note_pinned_block(BlockIs is, const void* block, std::size_t bytes) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  StreamOp op;
  op.kind = is == BlockIs::kGivenOut ? StreamOpKind::kAlloc : StreamOpKind::kFree;
  op.range = runtime.range(block, bytes);
  op.name = kPinnedName;
  const auto by = std::this_thread::get_id();
  if (is == BlockIs::kReturned) {
    runtime.returned_pinned[op.range.address] = {by, op};
    return runtime.begin_free(op, "libtorch_cuda");
  }
  const auto returned = runtime.returned_pinned.find(op.range.address);
  const bool found = returned != runtime.returned_pinned.end();
  if (is == BlockIs::kFree && (!found || returned->second.first != by)) return;
  if (found) {
    const StreamOp free = returned->second.second;
    runtime.returned_pinned.erase(returned);
    if (!runtime.completes_free(free.range)) runtime.tell(free);
  }
  if (is == BlockIs::kGivenOut) runtime.tell(op);
}

void learn_recorder(const std::function<void()>& record) {
  thread().learns = true;
  record();
  thread().learns = false;
}

InPinnedAllocator::InPinnedAllocator() { ++thread().in_pinned_allocator; }
InPinnedAllocator::~InPinnedAllocator() { --thread().in_pinned_allocator; }

bool is_pinned(const void* bytes, std::size_t count) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return Runtime::find(runtime.pinned_memory, bytes, count) != nullptr;
}

void note_host_access(bool writes, Range range, const char* name) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  StreamOp op;
  op.kind = writes ? StreamOpKind::kHostWrite : StreamOpKind::kHostRead;
  op.range = runtime.range(reinterpret_cast<const void*>(range.address), range.bytes);
  op.name = name;
  runtime.tell(op);
}

void launch(cudaStream_t stream, const char* name, std::vector<Range> reads,
            std::vector<Range> writes, std::function<void()> body, const KernelCost& cost,
            bool overwrites) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  Stream& on = runtime.stream(stream);
  StreamOp op;
  op.kind = StreamOpKind::kKernel;
  op.stream = on.id;
  op.name = name;
  op.reads = reads;
  op.writes = writes;
  runtime.tell(op);
  if (overwrites) {
    std::erase_if(reads, [&](Range range) {
      return std::find(writes.begin(), writes.end(), range) != writes.end();
    });
  }
  if (!runtime.computes(reads, writes)) body = [] {};
  runtime.enqueue(on, {.body = std::move(body), .cost = cost, .name = name});
}

void set_devices(int count) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.devices = std::clamp(count, 0, kDevices);
}

void set_device_name(std::string name) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.device_name = std::move(name);
}

void set_compute_capability(int times_ten) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.compute_capability = times_ten;
}

void set_multiprocessors(int count) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.multiprocessors = count;
}

void set_device_bytes(std::int64_t bytes, std::int64_t context_bytes) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.device_bytes_max = bytes;
  runtime.context_bytes = context_bytes;
}

void keep_addresses(bool kept) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.keeps_addresses = kept;
}

void put_segments_upwards(bool upwards) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.segments_go_up = upwards;
}

void set_pinned_bytes(std::int64_t bytes) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.pinned_bytes_max = bytes;
}

void set_place_finder(FindPlace find) { place_finder.store(find); }

AtPlace::AtPlace() : outermost_(thread().place == nullptr) {
  const FindPlace find = place_finder.load();
  if (outermost_ && find != nullptr) thread().place = find();
}

AtPlace::~AtPlace() {
  if (outermost_) thread().place = nullptr;
}

const char* place() { return thread().place; }

void fail(const std::string& name, std::int64_t nth, cudaError_t error, Where where) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.failures[name] = {nth, error, where};
}

bool failed(const std::string& name) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return !runtime.failures.contains(name);
}

void break_device(cudaError_t error) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  runtime.broken = error;
}

std::int64_t calls(const std::string& name) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return runtime.calls[name];
}

Counts counts() {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex);
  return runtime.counts();
}

}  // namespace ferry::vgpu
