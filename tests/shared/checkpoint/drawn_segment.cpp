#include "tests/shared/checkpoint/drawn_segment.h"

#include <algorithm>
#include <cstddef>

namespace ferry::test {

DrawnSegment::DrawnSegment(choices::Draws& draws) {
  shape.packs = static_cast<std::size_t>(draws.in(1, 6));
  around = draws.one_in(2);
  declines = draws.one_in(4);
  planned = draws.one_in(3);
  recomputing = draws.one_in(6);
  shape.early_stop = !draws.one_in(3);
  shape.compares = !draws.one_in(3);
  shape.debug = draws.one_in(4);
  misplanned = planned && draws.one_in(5);
  overridden = draws.one_in(4);
  scoped = draws.one_in(4);
  random = draws.one_in(2);
  grouped = draws.one_in(4);
  const bool moves = around && !declines;
  for (std::size_t i = 0; i < shape.packs; ++i) {
    chosen.push_back(static_cast<SavedChoice>(draws.few(6, 3)));
    shape.streams.push_back(static_cast<std::uint32_t>(draws.few(4, kSegmentStreams)));
    const SavedChoice fate =
        chosen.back() == SavedChoice::kOffload && !moves ? SavedChoice::kKeep : chosen.back();
    shape.fates.push_back(recomputing ? SavedChoice::kRecompute : fate);
  }
  shape.deviation = static_cast<Deviation>(draws.few(12, kDeviations));
  shape.place = static_cast<std::size_t>(draws.in(0, static_cast<int>(shape.packs)));
  const bool strays = draws.one_in(4) && shape.deviation != Deviation::kOtherSize;
  shape.elsewhere = strays ? shape.place : shape.packs;
  if (strays) elsewhere_bytes = segment_bytes(shape.place);
}

std::string DrawnSegment::refusal() const {
  if (scoped && shape.debug) return "debug=True is incompatible with non-default context_fn";
  if (!misplanned) return "";
  return "ferry::checkpoint: the segment saved " + std::to_string(shape.packs) +
         " tensors, and the plan in force has " + std::to_string(shape.packs + 1) + " for it";
}

std::int64_t DrawnSegment::passed_on() const {
  const std::int64_t offloads = std::count(chosen.begin(), chosen.end(), SavedChoice::kOffload);
  return 1 + (recomputing ? 0 : offloads);
}

}  // namespace ferry::test
