// Happens-before: finds two accesses to the same bytes, at least one a write, that nothing orders.
//
// The order is that of clocks.h: streams, events, host threads, tokens, the legacy default stream.
// The verdict holds for every timing of the device, for this order of the host's calls.
//
//        record e          wait e
//   s0 ──W──●                │         W and R conflict without the wait: s1's clock lacks s0's W
//           └──(clock)──▶ s1 ●──R
//
// A read conflicts with the last write of its bytes. A write conflicts with the reads since the
// last write, or with that write if there are none. Only the latest read of each stream is kept,
// because the earlier ones come before it. After a report, the later access counts as the last one.
// A stream that reads again what it read without order is not reported again.
//
// Accesses are kept by byte range, over device and host memory, and a free does not delete them. So
// if a pool gives a block to another stream too early, the new access conflicts with one of the
// bytes' earlier life (kReuse). An access may be forgotten when it and the last write of its bytes
// are settled (clocks.h): later accesses are ordered after both. After cudaFree, the next
// allocation of the bytes starts a new life.
//
// A record_use promises that, before the pool reuses the bytes, it waits for all work that the
// stream was given until the free. For the allocation's own stream it promises nothing, as in
// PyTorch. With an event, it promises a wait for what the event had recorded at that time, and no
// more.
//
// The stream-ordered allocator (PoolKind::kAsync; cudaMallocAsync) is work of its stream, at both
// ends. A use must come after the allocation, and the free after the uses. The driver orders the
// next owner of the bytes after the free. Nothing else is ordered after it: with other timing the
// driver would have given out other bytes.
//
// A torn copy is reported only if it does harm. A program may legally write a saved tensor in place
// if it never unpacks it. Its copy to the host (step `offload`) is then torn, and no call could
// order the two. This is reported when the torn bytes are read, or if they were read before.
//
// The rules come from PyTorch's CUDA stream sanitizer (torch/cuda/_sanitizer.py), which knows
// neither reuse nor host memory nor overlapping ranges. Not modelled: which bytes a kernel really
// touches, and that two unordered host threads might have issued work to a stream, or records of an
// event, in the other order. Both may hide a race; neither makes a false one. A successful poll
// counts as a synchronisation.
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
  // host_free_waits: the host pool gives bytes back to the system at once, so a free of host memory
  // under a copy is a hazard. (PyTorch's pinned pool keeps the bytes until the copy is done.)
  // reuse_at_free: assume that the caching allocator reuses freed bytes at once on their own
  // stream, and that the new owner writes them. If that would be too early, it is a kFreeUnderUse.
  // foreign: the log is another program's. Addresses do not tell host memory from device memory:
  // memory that the host writes, or that a copy to the host writes, is host memory. An op that
  // conflicts with an earlier one on several of its buffers is reported for each buffer.
  // hazards_most: at most so many hazards are kept; further ones are only counted.
  struct Options {
    bool host_free_waits = false;
    bool reuse_at_free = false;
    bool foreign = false;
    std::size_t hazards_most = ~std::size_t{0};
  };
  HappensBefore() : HappensBefore(Options{}) {}
  explicit HappensBefore(Options options);

  void operator()(const StreamOp& op);
  // Call this at the end of the program: nobody reuses the bytes of later frees.
  void end_reuse() { options_.reuse_at_free = false; }
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }
  // Gives the next op this number. By default ops are counted from 0. Numbers only grow.
  void number_next(std::uint64_t op);

  // Forgets the accesses to these bytes. For bytes that went back to an allocator that waits for
  // the device before it reuses them (cudaFree).
  void forget(Range range);
  // Drops the event's record: a later wait for it orders nothing.
  void destroy_event(EventId event) { clocks_.destroy_event(event); }
  // After settle(): true if every host thread knew of all work that the event, or the token, stands
  // for. A wait for it then does nothing, so the reader of a long log may destroy or forget it.
  void settle() { clocks_.settle(); }
  bool settled(EventId event) const { return clocks_.settled(event); }
  bool settled(HostToken token) const { return clocks_.settled(token); }
  void forget(HostToken token) { clocks_.forget_token(token); }
  // Drops what no later report can need. Call settle() first.
  void forget_settled();
  // False if nothing is remembered of the range, as if it had never been used.
  bool remembers(Range range) const;
  std::size_t pieces() const { return cells_.size() + lives_.size(); }  // remembered pieces
  std::uint64_t accesses() const;                                       // how many are remembered
  // Returns the first access, by address, of a stream to these bytes that the thread has not waited
  // for.
  std::optional<HazardAccess> pending(Range range, HostThread thread);
  HazardLog& log() { return log_; }

  // Accesses that stay remembered because exactly one host thread has not waited for them.
  struct Pin {
    HostThread thread{};
    std::uint64_t accesses = 0;
    std::uint64_t on_stream = 0;  // of these, the accesses by the actor that has most of them
    StreamId stream{};            // that actor, if it is a stream
    bool by_host = false;         // that actor is a host thread
  };
  std::vector<Pin> pins() const;  // most accesses first

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
  // An allocation or, after its free, the bytes that it had.
  struct Life {
    std::uint32_t since = 0;  // the seq of the latest alloc or free of these bytes
    Clocks::Place owner;      // none: host memory, or unknown
    bool freed = false;
    bool done_with = false;           // freed by cudaFree, which waits for the device
    std::vector<Clocks::Place> uses;  // streams of record_use
    // The clock that the pool waits for before reuse; empty: none. Before the free it has only what
    // the events of record_use stand for.
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
  // Calls f(begin, end, const Life*) for each part of the range; null where no life is known.
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
