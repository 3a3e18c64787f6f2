// Stairs down in memory: what to recompute, step by step, each with less saved at a time than the
// one before it and for more time. A ladder (ladder.h) frees bytes at the least time and does not
// weigh what a recompute needs while it runs: all that it makes again. A span that is the whole
// model frees everything and needs everything. So the steps are rungs of several ladders, of spans
// up to some size each, and of those rungs the ones that no other undercuts.
//
// What is saved at a time is the most of
//
//     what stays when the forward ends
//     what stays of all before a span, and what the span makes again
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/ladder.h"

namespace ferry::plan {

class Stairs {
 public:
  // `saved_bytes`: all that the forward saves, where nothing is recomputed.
  Stairs(const std::vector<Span>& spans, std::int64_t saved_bytes);

  // Step 0 recomputes nothing.
  std::size_t steps() const { return steps_.size(); }
  std::int64_t bytes(std::size_t step) const { return steps_[step].bytes; }
  std::int64_t ns(std::size_t step) const { return steps_[step].ns; }
  // What a step recomputes, in order of the forward.
  std::vector<Span> spans(std::size_t step) const;

 private:
  struct Step {
    std::int64_t bytes = 0;
    std::int64_t ns = 0;
    std::size_t ladder = 0;
    std::size_t rung = 0;
  };

  std::vector<Ladder> ladders_;
  std::vector<Step> steps_;
};

}  // namespace ferry::plan
