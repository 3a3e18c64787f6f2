// A CUDA runtime without a GPU, in place of libcudart. Device memory is host memory, streams are
// queues, and a seed decides when queued work runs. `ferry run` and Ferry's tests use it to find
// missing waits without a GPU. It is an emulator: it knows nothing of kernels or of time, and a
// program that passes on it may still fail on a real device.
//
// The library defines the entry points that LibTorch and Ferry call. A program that links it before
// libcudart runs LibTorch's real CUDA code (streams, events, caching allocator) on it. LibTorch's
// own kernels do not compute here: their launch returns cudaErrorNotSupported. `launch` queues a
// function that runs in its stream's order, as a kernel would; vgpu/operators uses it for
// LibTorch's operators.
//
// The runtime promises no more than CUDA does (CUDA runtime API and programming guide):
//
//  * A stream is a queue. Only events order streams. An event is a snapshot: a wait covers the
//    record that the event has at the time of the call, and nothing if it was never recorded.
//  * The legacy default stream waits for the blocking streams, and they wait for it. LibTorch's
//    pool streams are non-blocking.
//  * A copy with pinned memory is queued. With pageable memory the seed decides. The copy may be
//    staged, as on most machines: a copy to the host is done when the call returns, and a copy from
//    the host has read its source by then. Or it is queued, as on machines whose device reaches all
//    memory.
//  * cudaFree waits for its device. (The documentation says that it may; LibTorch's allocator needs
//    it.) cudaFreeHost waits for nothing and overwrites the bytes at once.
//
// A kernel that spins (kernel_entries.cpp) blocks its stream, at any tempo, until the host waits
// for it or has called the runtime often enough: each call counts as a microsecond.
//
// A stream's tempo says when its work runs. Eager: at once. Lazy: when the host waits for it; a
// query does not run it. Random: some of it at each call into the runtime. Under `mixed` the seed
// picks a tempo for each stream: one stream runs ahead while another stalls, so a missing wait does
// not stay hidden by luck. Under `side first` the default stream is lazy and all others are eager;
// `main first` is the opposite. Under these three a host that keeps querying gets its answer in the
// end.
//
// Every operation is reported to a Listener in the order of the calls, as the simulator reports its
// operations to the checkers. Host addresses are moved above sim's kHostBase. A successful query is
// reported as a synchronisation. Without a clock each operation takes a microsecond. Not modelled:
// kernels, stream capture, managed memory, peer access other than by plain copies, several
// processes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/stream_op.h"
#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

enum class Tempo : std::uint8_t { kEager, kLazy, kRandom, kMixed, kSideFirst, kMainFirst };

// Says which kernels compute. kComputed: all of them. The other two: only kernels that read known
// bytes and touch at most kFewBytes, such as those for positions and masks. Then the memory of a
// device need not exist. Where the host reads a value that is not known, it gets 0; a large copy to
// page-locked memory leaves that memory as it was. Under kRefused a program that reads back an
// unknown value gets an error instead (vgpu/operators).
enum class KernelValues : std::uint8_t { kComputed, kRefused, kZeros };
inline constexpr std::uint64_t kFewBytes = std::uint64_t{1} << 20;  // read and written, in total

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on(const StreamOp& op) = 0;
  // The bytes went back to the system. No new memory lies there until the device is done.
  virtual void forget(Range range) = 0;
  virtual void destroy_event(EventId event) = 0;
};

// Drains all queues, and resets failures, tempo, listener, memory sizes and the calling thread's
// state, except its device and its default streams. Memory, streams and events stay, because
// LibTorch keeps some of them for ever.
void reset();

// Drains all queues without logging a host synchronisation.
void run_everything();

// Sets the tempo of every stream. Drains all queues first.
void set_tempo(Tempo tempo, std::uint64_t seed);
// Sets the tempo of one stream, from now on.
void set_tempo(cudaStream_t stream, Tempo tempo);
// Sets the listener to which operations are reported; null means none. The listener is called under
// the runtime's lock and must not call the runtime.
void set_listener(Listener* listener);
// Calls `change` under the runtime's lock and makes its result the listener. No operation happens
// between the old listener and the new one.
void change_listener(const std::function<Listener*()>& change);
// Call it before there is work.
void set_values(KernelValues values);
KernelValues values();
// Returns whether these bytes, of a device or of page-locked memory, have the values that the
// program would have computed.
bool is_known(Range range);
// Returns whether a kernel with these reads and writes computes.
bool computes(const std::vector<Range>& reads, const std::vector<Range>& writes);
// Marks the bytes as not known, because whoever wrote them had no values to write.
void note_unknown(Range range);
// Sets the clock; null means that the runtime knows no card time. If `answers` is true, the clock
// answers the host's queries; otherwise the streams' tempo does. Call it before events and streams
// are used. The clock must outlive all of them.
void set_clock(Clock* clock, bool answers);
// Runs `call` under the runtime's lock, so that nobody else uses the clock meanwhile.
void with_clock(const std::function<void()>& call);
// From now on, what the calling thread issues belongs to this step of the core.
void set_step(Step step);

// LibTorch's allocators give blocks out and take them back without calling the runtime. Whoever
// traces them reports it here. A returned block that other streams still use is free once they are
// done with it; the allocator then records events on them (vgpu/runtime/pending_free.h).
enum class BlockIs : std::uint8_t { kGivenOut, kReturned, kFree };
void note_block(BlockIs is, int device, const void* block, std::size_t bytes, cudaStream_t stream,
                std::uint32_t private_pool = 0);
// Runs `record` and remembers the places in the code that record events during it. Events from
// these places always belong to the program, never to an allocator's block.
void learn_recorder(const std::function<void()>& record);
// The same as note_block, for page-locked memory.
void note_pinned_block(BlockIs is, const void* block, std::size_t bytes);
// While it lives, the calling thread is inside LibTorch's allocator of page-locked memory. What
// that allocator gets from the runtime and gives back is not logged, because its blocks are.
class InPinnedAllocator {
 public:
  InPinnedAllocator();
  ~InPinnedAllocator();
  InPinnedAllocator(const InPinnedAllocator&) = delete;
  InPinnedAllocator& operator=(const InPinnedAllocator&) = delete;
};

// Returns whether the bytes lie in one block of page-locked memory.
bool is_pinned(const void* bytes, std::size_t count);
// Reports that the calling thread itself reads or writes page-locked memory now.
void note_host_access(bool writes, Range range, const char* name);
// Reports that the host has a view of page-locked memory from now on, or that the view has ended.
// What the host does through a view is not reported.
void note_host_view(bool begins, Range range, const char* name);
// While it lives with `waits` true, the calling thread waits for each copy that it requests, before
// it does anything else.
class WaitsForCopies {
 public:
  explicit WaitsForCopies(bool waits);
  ~WaitsForCopies();
  WaitsForCopies(const WaitsForCopies&) = delete;
  WaitsForCopies& operator=(const WaitsForCopies&) = delete;

 private:
  bool outer_;
};

// Queues `body` on `stream`, where it runs like a kernel. The body must not call the runtime. If it
// throws, the message goes to stderr and every later call fails with cudaErrorAssert. `name` must
// live as long as the process. If `overwrites` is true, a range in both `reads` and `writes` is not
// really read.
void launch(cudaStream_t stream, const char* name, std::vector<Range> reads,
            std::vector<Range> writes, std::function<void()> body, const KernelCost& cost = {},
            bool overwrites = false);
// Between the two, what the calling thread launches and copies within a device is rehearsed: it
// does not run, the log does not get it, and no clock moves. Both return the card's time for all
// that the thread has rehearsed so far, in nanoseconds. Rehearsals may be nested.
std::int64_t begin_rehearsal();
std::int64_t end_rehearsal();
// Charges the host's time for an operator that the CPU computes itself.
void compute_on_host(const KernelCost& cost);

// Sets the number of devices: 2 by default, at most 8. Call it before LibTorch asks.
void set_devices(int count);
// Sets the name of the devices. The number of each device is appended.
void set_device_name(std::string name);
// Sets the compute capability of all devices, times ten: 90 is 9.0. The default is 80.
void set_compute_capability(int times_ten);
// Sets the number of multiprocessors of each device. The default is 4.
void set_multiprocessors(int count);
// Sets the memory of each device, of which a context takes some. A cudaMalloc beyond the rest
// fails. set_pinned_bytes limits page-locked memory. The default of both is 256 MiB.
void set_device_bytes(std::int64_t bytes, std::int64_t context_bytes = 0);
void set_pinned_bytes(std::int64_t bytes);
// If `kept` is true, no address is given out twice, so that an address in a log means one block. By
// default addresses are reused, as CUDA may do.
void keep_addresses(bool kept);
// If `upwards` is true, cudaMalloc returns increasing addresses; real drivers use decreasing ones.
// Call it before the first cudaMalloc.
void put_segments_upwards(bool upwards);

// Makes the nth call from now on (counted from 0) of the named entry point fail. kInAStep counts
// only calls that the core issues: if a call of LibTorch's own fails, in a destructor for example,
// the process ends.
enum class Where : std::uint8_t { kAnywhere, kInAStep };
void fail(const std::string& name, std::int64_t nth, cudaError_t error,
          Where where = Where::kAnywhere);
// Returns whether the planned failure has happened. Also true if none was planned.
bool failed(const std::string& name);
// Simulates an asynchronous error: every call from now on fails with it. cudaSuccess ends this.
void break_device(cudaError_t error);
// The number of calls of an entry point since the process began.
std::int64_t calls(const std::string& name);

// While it lives, the calling thread's operations come from one place in the program. Only the
// outermost object asks the finder for the place. The text that the finder returns must outlive the
// process.
using FindPlace = const char* (*)();
void set_place_finder(FindPlace find);
class AtPlace {
 public:
  AtPlace();
  ~AtPlace();
  AtPlace(const AtPlace&) = delete;
  AtPlace& operator=(const AtPlace&) = delete;

 private:
  bool outermost_ = false;
};
// The calling thread's place, or null if it is not known.
const char* place();

// While it lives, rejected calls of the calling thread are not counted and leave no error behind.
// It is for callers that can do the work in another way.
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // The name of the first call that was rejected; "" if none was.
  const std::string& refused() const { return refused_; }

 private:
  std::string refused_;
  std::string* before_ = nullptr;
};
// Counts a rejection that did not go through the runtime, such as a Triton launch.
void note_refusal(const std::string& name);

struct Counts {
  std::int64_t device_bytes = 0;
  std::int64_t pinned_bytes = 0;
  std::vector<std::int64_t> device_bytes_peaks;  // one for each device
  std::int64_t pinned_bytes_peak = 0;
  std::int64_t events = 0;
  std::int64_t queued = 0;       // operations that have not run
  std::int64_t wrong_frees = 0;  // frees of memory that the runtime did not give out
  // How often each unsupported function or kernel was called. These calls failed with
  // cudaErrorNotSupported. Kernels have their own names.
  std::map<std::string, std::int64_t> refusals;
};
Counts counts();

}  // namespace ferry::vgpu
