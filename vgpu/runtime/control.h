// A CUDA runtime without a GPU, in place of libcudart: memory is host memory, streams are queues,
// and a seed decides when what was queued runs. It is no GPU: it knows nothing of kernels or of
// time, and what passes on it has yet to be seen on a device.
//
// The library defines the entry points that LibTorch and Ferry call; a program that links it before
// libcudart runs the real LibTorch CUDA code, its streams, events and caching allocator, on it.
// LibTorch's own kernels do not compute here: a launch returns cudaErrorNotSupported. One computes
// by `launch`, a function that runs as a kernel would, when its stream comes to it; LibTorch's
// operators do so by vgpu/operators.
//
// What is promised is CUDA's least (CUDA runtime API and programming guide):
//
//  * a stream is a queue; streams meet at events only. An event is a snapshot: a wait takes what
//    it holds at the time of the call, and of one never recorded nothing;
//  * the legacy default stream waits for the blocking streams, and they for it; LibTorch's pool
//    streams are non-blocking;
//  * a copy with pinned memory is queued. With pageable memory the seed has it: staged, as most
//    machines do, where a copy to the host is done when the call returns and one from the host has
//    been read by then; or queued, as where the device reaches all memory;
//  * cudaFree waits for its device. (The documentation says that it may; LibTorch's allocator needs
//    it.) cudaFreeHost waits for nothing: its bytes are scribbled over, at once.
//
// A kernel that spins (kernel_entries.cpp) keeps its stream from going on, at any tempo, until the
// host waits for it or has called the runtime so often: a call stands for a microsecond.
//
// A stream's tempo is when its work runs: eager, at once; lazy, when the host waits for it, and
// never for a query; random, some of it at each call into the runtime. Under `mixed`, each stream
// draws its tempo from the seed: so one stream races ahead while another stalls, and an order that
// is not asked for does not come about by luck. Under `side first` the default stream is lazy and
// all others are eager; under `main first` it is the other way round. Under these three a host that
// asks again and again gets its answer in the end.
//
// Every operation goes to a Listener, as the simulator's do to the checkers, in the order of the
// calls. Host addresses are moved above sim's kHostBase. A query that succeeded is an event sync.
// Without a clock an operation takes a microsecond. Not modelled: kernels, stream capture,
// managed memory, peer access other than by plain copies, several processes.
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

// What kernels compute: all, or only what they make of few known bytes (kFewBytes), as positions
// and masks are; so that the memory of a device need not exist. What is not known is 0 where the
// host gets it, but in large copies to page-locked memory, which leave it as it was. kRefused: the
// program is refused what it reads back and nobody knows (vgpu/operators).
enum class KernelValues : std::uint8_t { kComputed, kRefused, kZeros };
inline constexpr std::uint64_t kFewBytes = std::uint64_t{1} << 20;  // read and written, in all

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on(const StreamOp& op) = 0;
  // The bytes went back to the system: nothing is given out there before the device is done.
  virtual void forget(Range range) = 0;
  virtual void destroy_event(EventId event) = 0;
};

// Runs whatever is queued, and forgets failures, tempo and listener. Memory, streams and events
// stay: LibTorch keeps some for ever.
void reset();

// Runs whatever is queued, and the host learns nothing by it.
void run_everything();

// Of every stream. Runs whatever is queued first.
void set_tempo(Tempo tempo, std::uint64_t seed);
// Of one stream, from now on.
void set_tempo(cudaStream_t stream, Tempo tempo);
// Called under the runtime's lock; must not call it. None: nobody.
void set_listener(Listener* listener);
// While nothing happens that the one before would have to hear.
void change_listener(const std::function<Listener*()>& change);
// Before there is work.
void set_values(KernelValues values);
KernelValues values();
// Whether the bytes, of a device or of page-locked memory, have the values that they would have.
bool is_known(Range range);
// Whoever wrote there had no values to write.
void note_unknown(Range range);
// None: the runtime knows no time. `answers`: what the host asks is done when it would be by the
// clock, and not by the streams' tempo. Must outlive every event and stream. Before they are used.
void set_clock(Clock* clock, bool answers);
// While nobody else uses the clock.
void with_clock(const std::function<void()>& call);
// What the calling thread issues from now on is the core's step.
void set_step(Step step);

// LibTorch's allocators give blocks out and take them back without a word to the runtime: whoever
// traces them says so here. One that is returned and in use on other streams is free once they are
// done with it: what the allocator records on them then (vgpu/runtime/pending_free.h).
enum class BlockIs : std::uint8_t { kGivenOut, kReturned, kFree };
void note_block(BlockIs is, int device, const void* block, std::size_t bytes, cudaStream_t stream);
// Who records an event meanwhile, on this thread, never does it for a block's sake.
void learn_recorder(const std::function<void()>& record);
// Of page-locked memory.
void note_pinned_block(BlockIs is, const void* block, std::size_t bytes);
// The calling thread is in LibTorch's allocator of page-locked memory: what that gets of the
// runtime and gives back is told nobody, for its blocks are.
class InPinnedAllocator {
 public:
  InPinnedAllocator();
  ~InPinnedAllocator();
  InPinnedAllocator(const InPinnedAllocator&) = delete;
  InPinnedAllocator& operator=(const InPinnedAllocator&) = delete;
};

// Whether the bytes are in one piece of page-locked memory.
bool is_pinned(const void* bytes, std::size_t count);
// The calling thread itself reads or writes page-locked memory, now.
void note_host_access(bool writes, Range range, const char* name);
// It was given page-locked memory, to use from now on with nothing said of it; and has it no more.
void note_host_view(bool begins, Range range, const char* name);
// The calling thread waits for each copy that it asks for, before anything else is done.
class WaitsForCopies {
 public:
  explicit WaitsForCopies(bool waits);
  ~WaitsForCopies();
  WaitsForCopies(const WaitsForCopies&) = delete;
  WaitsForCopies& operator=(const WaitsForCopies&) = delete;

 private:
  bool outer_;
};

// `body` runs on `stream` like a kernel. It must not call the runtime. If it throws, what it says
// goes to stderr and every later call fails with cudaErrorAssert. `name` lives as long as the
// process. `overwrites`: what it both reads and writes it does not really read.
void launch(cudaStream_t stream, const char* name, std::vector<Range> reads,
            std::vector<Range> writes, std::function<void()> body, const KernelCost& cost = {},
            bool overwrites = false);
// An operator of the CPU's own takes the host's time.
void compute_on_host(const KernelCost& cost);

// How many there are: 2 unless said otherwise, at most 8. Before LibTorch asks.
void set_devices(int count);
// What the devices are called; a number follows where there are several.
void set_device_name(std::string name);
// Of all devices, times ten: 90 is 9.0. At first 80.
void set_compute_capability(int times_ten);
// Of each device. At first 4.
void set_multiprocessors(int count);
// The total of each device, of which a context takes some; a cudaMalloc beyond the rest fails. And
// of what may be pinned.
void set_device_bytes(std::int64_t bytes, std::int64_t context_bytes = 0);
void set_pinned_bytes(std::int64_t bytes);
// Whether an address is never given out again, so that in a log it means one block. At first it may
// be, as CUDA's may.
void keep_addresses(bool kept);
// Whether cudaMalloc gives addresses above those that it gave, not below, as drivers do. Before it
// gives the first.
void put_segments_upwards(bool upwards);

// The nth call from now on (from 0) of this entry point, by its name, fails. In a step: of those
// that the core issues (LibTorch's own, in a destructor say, end the process where they fail).
enum class Where : std::uint8_t { kAnywhere, kInAStep };
void fail(const std::string& name, std::int64_t nth, cudaError_t error,
          Where where = Where::kAnywhere);
// Whether it has failed by now.
bool failed(const std::string& name);
// An asynchronous error: every call from now on fails with it. cudaSuccess: no more.
void break_device(cudaError_t error);
// Calls of an entry point since the start of the process.
std::int64_t calls(const std::string& name);

// Says where in a program the calling thread's operations come from, from its making to its end.
// The finder is asked by the outermost of them; what it returns must outlive the process.
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
// None: null.
const char* place();

// What the calling thread is refused from its making to its end is told nobody, and is none of its
// errors: whoever makes it has another way.
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // The first of it, by its name; "" of nothing.
  const std::string& refused() const { return refused_; }

 private:
  std::string refused_;
  std::string* before_ = nullptr;
};
// Something that the runtime is not asked for was refused.
void note_refusal(const std::string& name);

struct Counts {
  std::int64_t device_bytes = 0;
  std::int64_t pinned_bytes = 0;
  std::vector<std::int64_t> device_bytes_peaks;  // of each device
  std::int64_t pinned_bytes_peak = 0;
  std::int64_t events = 0;
  std::int64_t queued = 0;       // operations that have not run
  std::int64_t wrong_frees = 0;  // of what is none of the runtime's
  // Calls of what is not there, which failed with cudaErrorNotSupported; kernels by their own name.
  std::map<std::string, std::int64_t> refusals;
};
Counts counts();

}  // namespace ferry::vgpu
