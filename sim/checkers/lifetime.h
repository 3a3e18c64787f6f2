// Lifetimes: every op uses bytes that are allocated when the host issues it, every allocation is
// freed once, and nothing is left at the end.
//
// These are facts of the host's order alone. That an op which was issued in time may still *run*
// after the bytes were given out again, or while host memory goes back under a copy, is
// happens-before's to find (kReuse, kHostFree): it needs clocks, and this file has none.
//
// An allocation is the range that kAlloc names; a free must name exactly that range. The bytes of
// a freed allocation stay known until they are handed out again, so that a use after free names
// the free. One operation may span allocations that lie side by side: it is not known which
// buffer it means.
// Not modelled: use before the first write (values.h has it as undefined bytes), device and host
// pools (both are ranges).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/stream_op.h"
#include "sim/checkers/hazard.h"
#include "sim/interval_map.h"

namespace ferry::sim {

class Lifetime {
 public:
  // allow_outside: the op stream began when memory was in use already, so that bytes which it
  // never allocated may be used and freed.
  struct Options {
    bool allow_outside = false;
  };
  Lifetime() : Lifetime(Options{}) {}
  explicit Lifetime(Options options) : options_(options) {}

  void operator()(const StreamOp& op);

  // What touches this range may live on at the end: a parameter, a result.
  void expect_live(Range range);
  // At the end of the op stream: reports what still lives, in order of address.
  void finish();

  const std::vector<Hazard>& hazards() const { return log_.hazards(); }

 private:
  // An op that handed the bytes out or took them back.
  struct Mark {
    std::uint64_t op = 0;
    StreamId stream{};
    std::uint32_t name = 0;
    StreamOpKind kind = StreamOpKind::kAlloc;
    Step step = Step::kUser;
    bool by_host = false;
  };
  struct Block {
    bool live = false;
    Mark mark;    // its alloc while it lives, then its free
    Range whole;  // as it was allocated
  };

  void use(const StreamOp& op, Range range);
  void alloc(const StreamOp& op);
  void free(const StreamOp& op);
  void report(HazardKind kind, const Block* earlier, const StreamOp& op, Range range);
  Mark mark(const StreamOp& op);
  HazardAccess describe(const Mark& mark) const;

  Options options_;
  HazardLog log_;
  NameTable names_;
  std::uint64_t op_ = 0;  // the number of the current op
  IntervalMap<Block> blocks_;
  IntervalMap<char> expected_;
};

}  // namespace ferry::sim
