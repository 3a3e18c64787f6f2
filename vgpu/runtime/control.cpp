// Implements control.h: tests and `ferry run` configure the virtual GPU and query it here.
//
// Each function takes the runtime's lock and calls one of its parts (runtime.h). Blocks, kernels
// and host accesses are reported to the log as well. Data of the calling thread alone, such as its
// step and its place, needs no lock.
#include "vgpu/runtime/control.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

std::atomic<FindPlace> place_finder = nullptr;

// Gives access to the runtime and holds the runtime's lock while it lives.
class Locked {
 public:
  Runtime* operator->() const { return &runtime_; }

 private:
  Runtime& runtime_ = Runtime::get();
  std::lock_guard<std::mutex> lock_{runtime_.mutex()};
};

template <class Change>
void change_settings(Change&& change) {
  const Locked runtime;
  Settings settings = runtime->settings();
  change(settings);
  runtime->set(std::move(settings));
}

}  // namespace

void reset() {
  const Locked runtime;
  runtime->faults().forget_planned();
  runtime->log().set_listener(nullptr);
  runtime->run_everything();
  runtime->faults().break_device(cudaSuccess);  // a kernel that was still queued may have failed
  runtime->schedule().set_tempo(Tempo::kEager, 0);
  Settings settings = runtime->settings();
  settings.device_bytes_max = settings.pinned_bytes_max = std::int64_t{256} << 20;
  settings.context_bytes = 0;
  runtime->set(std::move(settings));
  runtime->freed().forget_wrong();
  const auto [device, default_streams] = std::pair(thread().device, thread().default_streams);
  thread() = Thread{.device = device, .default_streams = default_streams};
}

void run_everything() {
  const Locked runtime;
  runtime->run_everything();
}

void set_tempo(Tempo tempo, std::uint64_t seed) {
  const Locked runtime;
  runtime->run_everything();
  runtime->schedule().set_tempo(tempo, seed);
}

void set_tempo(cudaStream_t stream, Tempo tempo) {
  const Locked runtime;
  runtime->schedule().set_tempo(runtime->streams().use(stream), tempo);
}

void set_listener(Listener* listener) {
  const Locked runtime;
  runtime->log().set_listener(listener);
}

void change_listener(const std::function<Listener*()>& change) {
  const Locked runtime;
  runtime->log().set_listener(change());
}

void set_values(KernelValues values) {
  const Locked runtime;
  runtime->values().set(values);
}

KernelValues values() {
  const Locked runtime;
  return runtime->values().values();
}

bool is_known(Range range) {
  const Locked runtime;
  return runtime->values().is_known(range);
}

bool computes(const std::vector<Range>& reads, const std::vector<Range>& writes) {
  const Locked runtime;
  return runtime->values().computes(reads, writes);
}

void note_unknown(Range range) {
  const Locked runtime;
  runtime->values().remove(range);
}

void set_clock(Clock* clock, bool answers) {
  const Locked runtime;
  runtime->time().set(clock, answers);
}

void with_clock(const std::function<void()>& call) {
  const Locked runtime;
  call();
}

void set_step(Step step) { thread().step = step; }

void note_block(BlockIs is, int device, const void* block, std::size_t bytes, cudaStream_t stream,
                std::uint32_t private_pool) {
  const Locked runtime;
  const bool given_out = is == BlockIs::kGivenOut;
  StreamOp op;
  op.kind = given_out ? StreamOpKind::kAlloc : StreamOpKind::kFree;
  op.stream = runtime->streams().use(stream, device).id;
  op.range = runtime->device_memory().range(block, bytes);
  if (is == BlockIs::kReturned) return runtime->log().begin_free(op, "libc10_cuda");
  const Graph* const captured = runtime->graphs().of(runtime->streams().use(stream, device));
  if (given_out && captured != nullptr) op.graph = captured->id;
  if (given_out) op.graph_pool = private_pool;
  given_out ? runtime->log().tell(op) : runtime->log().tell_free(op);
  const auto change = static_cast<std::int64_t>(bytes);
  runtime->time().allocated(device, given_out ? change : -change);
}

void note_pinned_block(BlockIs is, const void* block, std::size_t bytes) {
  const Locked runtime;
  Log& log = runtime->log();
  StreamOp op;
  op.kind = is == BlockIs::kGivenOut ? StreamOpKind::kAlloc : StreamOpKind::kFree;
  op.range = runtime->device_memory().range(block, bytes);
  op.name = kPinnedName;
  const std::uint64_t address = op.range.address;
  switch (is) {
    case BlockIs::kReturned:
      return log.begin_pinned_free(op);
    case BlockIs::kFree:
      if (log.began_pinned_free(address)) log.end_pinned_free(address);
      return;
    case BlockIs::kGivenOut:
      log.end_pinned_free(address);
      return log.tell(op);
  }
}

void learn_recorder(const std::function<void()>& record) {
  thread().learns = true;
  record();
  thread().learns = false;
}

InPinnedAllocator::InPinnedAllocator() { ++thread().in_pinned_allocator; }
InPinnedAllocator::~InPinnedAllocator() { --thread().in_pinned_allocator; }

bool is_pinned(const void* bytes, std::size_t count) {
  const Locked runtime;
  return runtime->pinned_memory().find(bytes, count) != nullptr;
}

void note_host_access(bool writes, Range range, const char* name) {
  const Locked runtime;
  const auto* const address = reinterpret_cast<const void*>(range.address);
  StreamOp op;
  op.kind = writes ? StreamOpKind::kHostWrite : StreamOpKind::kHostRead;
  op.range = runtime->device_memory().range(address, range.bytes);
  op.name = name;
  runtime->log().tell(op);
}

void note_host_view(bool begins, Range range, const char* name) {
  const Locked runtime;
  const auto* const address = reinterpret_cast<const void*>(range.address);
  StreamOp op;
  op.kind = begins ? StreamOpKind::kHostView : StreamOpKind::kHostViewEnd;
  op.range = runtime->device_memory().range(address, range.bytes);
  op.name = name;
  runtime->log().tell(op);
}

WaitsForCopies::WaitsForCopies(bool waits)
    : outer_(std::exchange(thread().waits_for_copies, waits)) {}
WaitsForCopies::~WaitsForCopies() { thread().waits_for_copies = outer_; }

void compute_on_host(const KernelCost& cost) {
  const Locked runtime;
  runtime->time().host_computes(cost);
}

void launch(cudaStream_t stream, const char* name, std::vector<Range> reads,
            std::vector<Range> writes, std::function<void()> body, const KernelCost& cost,
            bool overwrites) {
  const Locked runtime;
  Stream& on = runtime->streams().use(stream);
  StreamOp op;
  op.kind = StreamOpKind::kKernel;
  op.stream = on.id;
  op.name = name;
  op.writes = writes;
  const std::vector<Range> all_reads = reads;
  op.reads = all_reads;
  if (overwrites) {
    std::erase_if(reads, [&](Range range) {
      return std::find(writes.begin(), writes.end(), range) != writes.end();
    });
  }
  const bool has_values = runtime->values().computes(reads, writes);
  if (thread().rehearsals == 0) runtime->values().note_written(writes, has_values);
  if (!has_values) body = [] {};
  runtime->issue(on, op, {.body = std::move(body), .cost = cost, .name = name});
}

std::int64_t begin_rehearsal() {
  ++thread().rehearsals;
  return thread().rehearsed_ns;
}

std::int64_t end_rehearsal() {
  --thread().rehearsals;
  return thread().rehearsed_ns;
}

void set_devices(int count) {
  change_settings([=](Settings& settings) { settings.devices = std::clamp(count, 0, kDevices); });
}

void set_device_name(std::string name) {
  change_settings([&](Settings& settings) { settings.device_name = std::move(name); });
}

void set_compute_capability(int times_ten) {
  change_settings([=](Settings& settings) { settings.compute_capability = times_ten; });
}

void set_multiprocessors(int count) {
  change_settings([=](Settings& settings) { settings.multiprocessors = count; });
}

void set_device_bytes(std::int64_t bytes, std::int64_t context_bytes) {
  change_settings([=](Settings& settings) {
    settings.device_bytes_max = bytes;
    settings.context_bytes = context_bytes;
  });
}

void keep_addresses(bool kept) {
  change_settings([=](Settings& settings) { settings.keeps_addresses = kept; });
}

void put_segments_upwards(bool upwards) {
  change_settings([=](Settings& settings) { settings.segments_go_up = upwards; });
}

void set_pinned_bytes(std::int64_t bytes) {
  change_settings([=](Settings& settings) { settings.pinned_bytes_max = bytes; });
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

Attempt::Attempt() : before_(std::exchange(thread().attempt, &refused_)) {}

Attempt::~Attempt() {
  thread().attempt = before_;
  if (!refused_.empty() && thread().last_error == cudaErrorNotSupported) {
    thread().last_error = cudaSuccess;
  }
}

void note_refusal(const std::string& name) {
  const Locked runtime;
  runtime->note_refusal(name);
}

void fail(const std::string& name, std::int64_t nth, cudaError_t error, Where where) {
  const Locked runtime;
  runtime->faults().plan(name, nth, error, where);
}

bool failed(const std::string& name) {
  const Locked runtime;
  return !runtime->faults().is_planned(name);
}

void break_device(cudaError_t error) {
  const Locked runtime;
  runtime->faults().break_device(error);
}

std::int64_t calls(const std::string& name) {
  const Locked runtime;
  return runtime->faults().calls(name);
}

Counts counts() {
  const Locked runtime;
  return {.device_bytes = runtime->device_memory().bytes(),
          .pinned_bytes = runtime->pinned_memory().bytes(),
          .device_bytes_peaks = runtime->device_memory().peaks(),
          .pinned_bytes_peak = runtime->pinned_memory().peak(),
          .events = runtime->events().count(),
          .queued = runtime->streams().queued(),
          .wrong_frees = runtime->freed().wrong(),
          .refusals = runtime->faults().refusals()};
}

}  // namespace ferry::vgpu
