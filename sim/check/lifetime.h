// Lifetimes: every op uses bytes that are allocated when the host issues it, and streams that are
// not destroyed; every allocation is freed once, and nothing is left at the end.
//
// These are facts of the host's order alone. That an op which was issued in time may still *run*
// after the bytes were given out again, or while host memory goes back under a copy, is
// happens-before's to find (kReuse, kHostFree): it needs clocks, and this file has none.
//
// An allocation is the range that kAlloc names; a free must name exactly that range.
// The bytes of a freed allocation stay known until they are handed out again, so that a
// use after free names the free. One operation may span allocations that lie side by
// side: it is not known which buffer it means. A pool of kind kCaching may give out
// parts of what another pool allocated: such bytes are judged by the caching pool
// alone, as long as the memory beneath them is not freed. Of destroyed streams the
// latest 65,536 are remembered. Freed bytes are remembered until they are handed out
// again, so all of a log whose addresses never come back is. Not modelled: use before
// the first write (values.h has it as undefined bytes), device and host pools (both are
// ranges).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/stream_op.h"
#include "sim/check/hazard.h"
#include "sim/check/interval_map.h"

namespace ferry::check {

class Lifetime {
 public:
  // allow_outside: the op stream began when memory was in use already, so that bytes which it
  // never allocated may be used and freed. report_overrun: all the same, no op may touch bytes that
  // are allocated and, in one range, bytes that were not.
  struct Options {
    bool allow_outside = false;
    bool report_overrun = false;
    std::size_t hazards_most = ~std::size_t{0};  // further hazards are only counted
  };
  Lifetime() : Lifetime(Options{}) {}
  explicit Lifetime(Options options) : options_(options), log_(options.hazards_most) {}

  void operator()(const StreamOp& op);
  // The next op has this number (by default they are counted from 0).
  void number_next(std::uint64_t op) { op_ = op; }

  // A range that may stay allocated at the end: a parameter, a result.
  void expect_live(Range range);
  // At the end of the op stream: reports what is still allocated, in order of address.
  void finish();

  const std::vector<Hazard>& hazards() const { return log_.hazards(); }
  HazardLog& log() { return log_; }
  // Calls f for each stream that a later report may name, some more than once.
  template <class F>
  void each_stream(F&& f) const {
    for (const Blocks* blocks : {&blocks_, &beneath_}) {
      blocks->visit(
          0, ~std::uint64_t{0},
          [&](std::uint64_t, std::uint64_t, const Allocation& block) { f(block.mark.stream); });
    }
    for (const auto& [id, mark] : destroyed_) {
      f(StreamId{id});
      f(mark.stream);
    }
  }

 private:
  // An op that handed the bytes out or took them back.
  struct Mark {
    std::uint64_t op = 0;
    StreamId stream{};
    std::uint32_t name = 0;
    StreamOpKind kind = StreamOpKind::kAlloc;
    Step step = Step::kUser;
    bool by_host = false;
    HostThread thread{};
  };
  struct Allocation {
    bool live = false;
    Mark mark;    // its alloc while it is allocated, then its free
    Range whole;  // the range as it was allocated
  };

  using Blocks = IntervalMap<Allocation>;
  // The parts of a range in one level of blocks.
  struct Found {
    Range gap, freed;                        // first bytes without a block; of a freed block
    const Allocation* free_block = nullptr;  // valid until the blocks change
    const Allocation* live_block = nullptr;
    bool any = false;
  };

  void use(const StreamOp& op, Range range);
  void use_stream(const StreamOp& op);
  void forget_oldest_destroyed();
  Found look(const Blocks& blocks, Range range) const;
  Blocks& blocks_of(const StreamOp& op) {
    return op.pool == PoolKind::kCaching ? blocks_ : beneath_;
  }
  void alloc(const StreamOp& op);
  void free(const StreamOp& op);
  void report(HazardKind kind, const Mark* earlier, const StreamOp& op, Range range, Range buffer);
  void finish(const Blocks& blocks);
  Mark mark(const StreamOp& op);
  void drop_names();
  HazardAccess describe(const Mark& mark) const;

  Options options_;
  HazardLog log_;
  NameTable names_;
  std::uint64_t op_ = 0;                               // the number of the current op
  Blocks blocks_;                                      // blocks of the caching pools
  Blocks beneath_;                                     // blocks of the other pools
  std::unordered_map<std::uint32_t, Mark> destroyed_;  // streams, by id
  IntervalMap<char> expected_;
};

}  // namespace ferry::check
