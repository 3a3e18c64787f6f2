// Draws the segment of a script (frame_drawn_test.cpp): what it saves, what becomes of that, how
// its recomputes deviate, and how it is called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/seam/checkpoint_options.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/segment_results.h"

namespace ferry::test {

inline constexpr std::uint32_t kSegmentStreams = 3;  // 0: the one on which the function runs

struct DrawnSegment {
  explicit DrawnSegment(choices::Draws& draws);

  // Returns what its call throws; empty: nothing.
  std::string refusal() const;
  // Returns how many tensors the hooks around are given: its input, and what moves.
  std::int64_t passed_on() const;
  std::uint32_t stream(std::size_t ordinal) const {
    return ordinal < shape.packs ? shape.streams[ordinal] : 0;
  }

  bool around = false;  // there are hooks around
  bool declines = false;
  bool planned = false;      // its choices are a plan's
  bool recomputing = false;  // a recompute calls it: then it makes everything again
  bool misplanned = false;   // for another number of tensors
  bool overridden = false;   // the options that the call is given are not in force
  bool scoped = false;       // it has scopes of the user's
  bool random = false;       // it has its random numbers again
  bool grouped = false;      // forward runs in a group of backwards
  SegmentShape shape;
  std::vector<SavedChoice> chosen;   // by ordinal
  std::int64_t elsewhere_bytes = 0;  // what has so many is said to be on another device
};

}  // namespace ferry::test
