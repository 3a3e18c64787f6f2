// Happens-before: finds two accesses to the same bytes that nothing orders, at least one a write.
//
// Order is clocks.h's: streams, events, host threads, tokens, the legacy default stream. The
// verdict holds for every timing of the device, for this order of the host's calls.
//
//        record e          wait e
//   s0 ──W──●                │         W and R conflict without the wait: s1's clock lacks s0's W
//           └──(clock)──▶ s1 ●──R
//
// A read conflicts with the last write of any of its bytes; a write with the reads since, or with
// the last write where there are none. Of each stream only the latest read is kept: the others
// come before it. After a report the later access stands as the last one, and a stream that
// reads again what it read unordered is not reported again.
//
// Accesses are kept by byte range, over device and host memory. They are not forgotten at a free: a
// block that its pool gives to another stream too early is an access that conflicts with one of
// the bytes' earlier life (kReuse). An access may be forgotten when it is settled (clocks.h), and
// the last write of its bytes is: whatever comes then is ordered after both. A record_use promises
// that the pool waits, before it gives the bytes out again, for all that its stream was given until
// the free, and so for all that comes before that. For the allocation's own stream it promises
// nothing, as in PyTorch. One that names an event promises that the pool waits for what the event
// had recorded when it was told, and no more. What went through cudaFree starts a new life with its
// next allocation.
//
// The stream-ordered allocator (PoolKind::kAsync; cudaMallocAsync) is work of its stream, at both
// ends: a use must come after the allocation, and the free after the uses. Who gets the bytes next
// comes after the free, for the driver sees to that. Nothing else of that stream does: with other
// timing the driver would have given out other bytes.
//
// One mistake is reported only with its consequence: a program may legally write, in place, a
// tensor that was saved and will not be unpacked. Its copy to the host (step `offload`) is then
// torn, and no order could be asked of anybody. It is reported when the torn bytes are read, or
// were already.
//
// Starting point: the rules of PyTorch's CUDA stream sanitizer (torch/cuda/_sanitizer.py), which
// knows neither reuse nor host memory nor overlapping ranges.
// Not modelled: what bytes a kernel really touches, and that two host threads which nothing orders
// might have given one stream its work, or one event its record, the other way round. Both may hide
// a race; none makes a false one. A poll that was successful is the synchronisation it amounts to.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/stream_op.h"
#include "sim/check/clocks.h"
#include "sim/check/hazard.h"
#include "sim/check/interval_map.h"

namespace ferry::check {

class HappensBefore {
 public:
  // host_free_waits: the host pool gives bytes back to the system at once, so that a free of host
  // memory under a copy is a hazard. (PyTorch's pinned pool keeps them until the copy is done.)
  // reuse_at_free: the caching allocator gives freed bytes out again at once, on the stream that
  // they belong to, and whoever gets them writes them, as may happen: kFreeUnderUse, where that
  // would be too early.
  // foreign: another program's log. Its addresses do not tell host memory from a device's: what the
  // host writes, or a copy to the host, is host memory. And an op that conflicts with an earlier
  // one on several of its buffers is reported for each of them, not once. hazards_most: further
  // hazards are only counted.
  struct Options {
    bool host_free_waits = false;
    bool reuse_at_free = false;
    bool foreign = false;
    std::size_t hazards_most = ~std::size_t{0};
  };
  HappensBefore() : HappensBefore(Options{}) {}
  explicit HappensBefore(Options options);

  void operator()(const StreamOp& op);
  // The program is over: nobody gets what is freed from now on.
  void end_reuse() { options_.reuse_at_free = false; }
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }
  // The next op has this number (by default they are counted from 0). Numbers only grow.
  void number_next(std::uint64_t op);

  // The bytes went back to an allocator that waits for the device before it reuses them (cudaFree):
  // no later access conflicts with those so far.
  void forget(Range range);
  // A destroyed event's record is gone: waiting on it orders nothing.
  void destroy_event(EventId event) { clocks_.destroy_event(event); }
  // After settle(): true if every host thread knew of all that the event, or the token, stands for.
  // Waiting for it then does nothing, so the reader of a long log may destroy or forget it.
  void settle() { clocks_.settle(); }
  bool settled(EventId event) const { return clocks_.settled(event); }
  bool settled(HostToken token) const { return clocks_.settled(token); }
  void forget(HostToken token) { clocks_.forget_token(token); }
  // Also after settle(): drops what no report can need any more.
  void forget_settled();
  // True unless the range looks as if it had never been used.
  bool remembers(Range range) const;
  std::size_t pieces() const { return cells_.size() + lives_.size(); }  // remembered pieces
  std::uint64_t accesses() const;                                       // the number remembered
  // Work on these bytes that the thread has not waited for, of the first of them that have any.
  std::optional<HazardAccess> pending(Range range, HostThread thread);
  HazardLog& log() { return log_; }

  // Accesses that are remembered because one host thread alone has not waited for them.
  struct Pin {
    HostThread thread{};
    std::uint64_t accesses = 0;
    std::uint64_t on_stream = 0;  // how many of these are on the stream with most
    StreamId stream{};
    bool by_host = false;  // made by another host thread, on no stream
  };
  std::vector<Pin> pins() const;  // largest first

  // The order known so far, for other checkers.
  Clocks& clocks() { return clocks_; }

 private:
  using Actor = Clocks::Actor;

  struct Access {
    std::uint32_t seq = 0;  // the op's number + 1; 0: no access
    std::uint32_t name = 0;
    Actor actor = 0;
    StreamOpKind kind = StreamOpKind::kKernel;
    Step step = Step::kUser;
  };
  // The latest accesses to some bytes.
  struct Cell {
    Access write;
    std::vector<Access> reads;  // since that write, at most one per actor
  };
  // One allocation; after its free, the bytes that it had.
  struct Life {
    std::uint32_t since = 0;  // the seq of the latest alloc or free of these bytes
    Clocks::Place owner;      // none: host memory, or unknown
    bool freed = false;
    bool done_with = false;           // freed by cudaFree: the device was done with it
    std::vector<Clocks::Place> uses;  // streams of record_use
    // The clock that the pool waits for; empty: none. Before the free, what events stand for.
    std::vector<std::uint32_t> done;
  };
  struct Conflict {
    HazardKind kind;
    bool same_pool;
    Access earlier;
    Range buffer;
    std::uint64_t begin, end;
  };

  bool ordered(const Access& earlier) const { return earlier.seq <= now_[earlier.actor]; }
  void read(Range range);
  void write(Range range);
  void access(const StreamOp& op, Actor actor);
  void access_on_stream(const StreamOp& op);
  void access_on_host(const StreamOp& op);
  void begin(const StreamOp& op, Actor actor);
  void drop_names();
  void alloc(const StreamOp& op);
  void free(const StreamOp& op);
  void hand_out_in_stream(const StreamOp& op);
  void free_in_stream(const StreamOp& op);
  // Calls f(begin, end, const Life*) for all of the range, with null where no life is known.
  template <class F>
  void lives_of(std::uint64_t begin, std::uint64_t end, F&& f) const;
  void take_uses(Range range);
  void record_use(const StreamOp& op);
  void end_under_use(const StreamOp& op, Actor actor, HazardKind kind);
  void drop_done(Range range, const Life& life);
  bool settled(const Access& access) const { return clocks_.settled(access.actor, access.seq); }
  void conflict(HazardKind kind, const Access& earlier, std::uint64_t begin, std::uint64_t end,
                const Cell& cell);
  void report_conflicts();
  bool waits(const Hazard& hazard, const Access& earlier);
  void read_copy(const Access& copy);
  HazardAccess describe(const Access& access) const;

  Options options_;
  HazardLog log_;
  NameTable names_;
  Clocks clocks_;
  std::uint32_t seq_ = 0;  // the current op's number + 1
  Access current_;
  Range buffer_;                                   // the current op's buffer that is being checked
  bool writes_host_ = false;                       // the current op writes host memory
  const std::uint32_t* now_ = nullptr;             // the clock of the current access
  std::vector<std::uint32_t> freed_;               // the clock of a free
  std::vector<Conflict> conflicts_;                // of the current op
  std::unordered_set<std::uint32_t> read_copies_;  // seqs of offloads
  std::unordered_map<std::uint32_t, std::vector<Hazard>> torn_copies_;  // looked up by key
  IntervalMap<Cell> cells_;
  IntervalMap<Life> lives_;
};

}  // namespace ferry::check
