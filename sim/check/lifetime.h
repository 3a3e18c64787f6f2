// Lifetimes: checks that every op uses bytes that are allocated when the host issues it, and
// streams that are not destroyed; that every allocation is freed once; and that nothing is left at
// the end.
//
// These rules depend only on the order of the host's calls. An op that was issued in time may still
// *run* after the bytes were reused, or while host memory goes back under a copy. To find that
// takes clocks, so happens-before does it (kReuse, kHostFree).
//
// An allocation is the range that kAlloc names, and a free must name exactly that range. One op may
// span allocations that lie side by side, because it is not known which buffer it means. A pool of
// kind kCaching may give out parts of what another pool allocated. Such bytes are judged by the
// caching pool alone, as long as the memory beneath them is not freed.
//
// CUDA graphs. At a replay, each node's bytes must have the life that they had at the capture
// (graph_lives.cpp). If a block from outside the graph's pool was freed since, that is a mistake.
// In the pool itself, blocks may be free, or belong to somebody else by now: a graph may write a
// tensor that lives on in its pool. That does harm only if the tensor is read before it is written
// again, so the read is reported. Others may use free bytes of a pool of graphs: whoever replays
// the graphs may know that they hold a result (torch._inductor's CUDA graph trees do that).
//
// Freed bytes are remembered until they are allocated again, so that a use after free names the
// free. So if the addresses of a log never come back, all of them are remembered. Of destroyed
// streams, the latest 65,536 are remembered. Not modelled: use before the first write (values.h has
// such bytes as undefined), and the difference between device and host pools (both are ranges).
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
  // allow_outside: the op stream began when memory was already in use, so ops may use and free
  // bytes that it never allocated. report_overrun: even then, report an op that uses one range with
  // both allocated bytes and bytes that never were.
  struct Options {
    bool allow_outside = false;
    bool report_overrun = false;
    std::size_t hazards_most = ~std::size_t{0};  // further hazards are only counted
  };
  Lifetime() : Lifetime(Options{}) {}
  explicit Lifetime(Options options) : options_(options), log_(options.hazards_most) {}

  void operator()(const StreamOp& op);
  // Gives the next op this number. By default ops are counted from 0.
  void number_next(std::uint64_t op) { op_ = op; }

  // Lets a range stay allocated at the end (a parameter, a result).
  void expect_live(Range range);
  // Call this at the end of the op stream: it reports what is still allocated, in order of address.
  void finish();

  const std::vector<Hazard>& hazards() const { return log_.hazards(); }
  HazardLog& log() { return log_; }
  // Calls f for each stream that a later report may name, for some of them more than once.
  template <class F>
  void each_stream(F&& f) const {
    for (const Blocks* blocks : {&blocks_, &beneath_}) {
      blocks->visit(
          0, ~std::uint64_t{0},
          [&](std::uint64_t, std::uint64_t, const Allocation& block) { f(block.mark.stream); });
    }
    overwritten_.visit(0, ~std::uint64_t{0},
                       [&](std::uint64_t, std::uint64_t, const Mark& by) { f(by.stream); });
    for (const auto& [id, mark] : destroyed_) {
      f(StreamId{id});
      f(mark.stream);
    }
  }

 private:
  // An op that allocated or freed the bytes.
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
    Mark mark;                     // the alloc while it is allocated, then the free
    Range whole;                   // the range as it was allocated
    std::uint32_t graph_pool = 0;  // it was allocated in a pool of graphs
  };
  // Bytes that a node of a graph uses, and what they were at its capture.
  struct Captured {
    Range range;
    std::uint64_t alloc_op = 0;
    std::uint32_t graph_pool = 0;  // of the allocation
  };

  using Blocks = IntervalMap<Allocation>;
  // The state of a range in one level of blocks.
  struct Found {
    Range gap, freed;                        // first bytes without a block; first freed bytes
    const Allocation* free_block = nullptr;  // valid until the blocks change
    const Allocation* live_block = nullptr;
    bool any = false;
  };

  void use(const StreamOp& op);
  void use(const StreamOp& op, Range range);
  // Graphs (graph_lives.cpp).
  void capture(const StreamOp& op);
  void replay(const StreamOp& op);
  void replay(const StreamOp& op, const Captured& part, bool writes);
  bool is_own(GraphId graph, const Captured& part) const;
  void read(const StreamOp& op, Range range);
  void write(Range range) {
    if (overwritten_.size() != 0) overwritten_.erase(range.address, range.end());
  }
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
  std::uint64_t op_ = 0;                               // number of the current op
  Blocks blocks_;                                      // blocks of the caching pools
  Blocks beneath_;                                     // blocks of the other pools
  std::unordered_map<std::uint32_t, Mark> destroyed_;  // streams, by id
  IntervalMap<char> expected_;
  struct Node {
    std::vector<Captured> reads, writes;
  };
  std::unordered_map<std::uint64_t, Node> nodes_;             // by graph and number
  std::unordered_map<std::uint32_t, std::uint32_t> pool_of_;  // by graph; those that allocated
  IntervalMap<Mark> overwritten_;  // by a replay that took the bytes for another block
};

}  // namespace ferry::check
