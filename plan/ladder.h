// What to recompute, rung by rung: each rung of the ladder frees more bytes than the one before it
// for more time, and every rung is as cheap a way to free its bytes as there is here. So one ladder
// serves all budgets, and a budget is a matter of how high.
//
// What is recomputed are spans: the calls of a module of the forward, of whatever family (blocks,
// parts of blocks, norms), up to one of its saves; what it saves later stays. Of two modules that
// nest at most one is recomputed. A span
//
//   frees  storages that are made and saved in it, and saved nowhere else
//   keeps  what its module reads from before it, which is memory where nobody else saves that
//   costs  its ops up to its last save
//
// The rungs of a module are the lower convex hull, time over bytes, of its own spans and of the
// rungs of the modules inside it. The memory that a recompute needs while it runs is not weighed:
// whoever climbs lets the simulator judge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

struct Span {
  std::string module;
  std::size_t begin = 0;  // statements [begin, end) of the forward are its module's
  std::size_t end = 0;
  std::size_t saves = 0;      // recomputed: the first so many of the tensors that it saves
  std::size_t all_saves = 0;  // of the module
  std::int64_t bytes = 0;     // freed, beyond those that it keeps
  std::int64_t ns = 0;
  std::int64_t before_bytes = 0;  // saved of what was made before the module
};

// Of all modules of the forward that may be segments, outer before inner, and of each module its
// spans from short to long. If markers are of calls of checkpoint, only of these; none if the
// program has checkpoints itself.
std::vector<Span> module_spans(const Program& program, const Hardware& hardware);

// Bytes of all that the forward makes and saves; 0 where there are no spans.
std::int64_t saved_bytes(const Program& program, const Hardware& hardware);

class Ladder {
 public:
  explicit Ladder(std::vector<Span> spans);

  // Rung 0 frees nothing.
  std::size_t rungs() const { return root_.levels.size(); }
  std::int64_t bytes(std::size_t rung) const { return root_.levels[rung].bytes; }
  std::int64_t ns(std::size_t rung) const { return root_.levels[rung].ns; }
  // What a rung recomputes, in order of the forward.
  std::vector<Span> spans(std::size_t rung) const;

 private:
  // One way to free bytes in a module: by a span of its own, or by what the modules in it do after
  // so many steps.
  struct Level {
    std::int64_t bytes = 0;
    std::int64_t ns = 0;
    std::optional<std::size_t> span = {};
    std::size_t steps = 0;
  };
  struct Module {
    std::vector<Module> inner = {};
    std::vector<std::size_t> steps = {};  // each takes this inner module up one level
    std::vector<Level> levels = {};       // the hull; the first frees nothing
  };

  Module module_at(std::size_t& at) const;
  void climb(Module& module) const;
  void collect(const Module& module, std::size_t level, std::vector<Span>& found) const;

  std::vector<Span> all_;
  Module root_;
};

}  // namespace ferry::plan
