// The data that passes between the stages of a program, in the form that the core's pipeline needs:
// values of the micro-batch, from each stage to the next one, and skip tensors by name.
//
//     stage 0 ──values──▶ stage 1 ──values──▶ stage 2          portals: a value used two stages
//        └──────────── skip "0.r>2.a" ──────────▲               later or more is a skip
//
//     stage 0 ──values──▶ stage 1 ──values──▶ stage 2          relayed: it is one more value of
//                 and r             and r                       every stage on its way
//
// A value has a tensor, an edge, or both (formats/stages.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/stages.h"
#include "shared/skip/layout.h"

namespace ferry::sim {

// A result of a stage.
struct StageResult {
  std::uint32_t stage = 0;
  std::uint32_t result = 0;
  bool edge = false;  // a gradient comes back for it
};

struct StageCrossings {
  std::vector<StageResult> arriving;  // the values that it receives, in order
  std::vector<StageResult> leaving;   // the values that it hands on: its own, or some that arrived
  std::vector<StageRoute> popped;
  std::vector<StageRoute> stashed;
  // The source of each argument: an index of `arriving`; kNone: it is popped.
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> arguments;
};

// Returns one for each stage.
std::vector<StageCrossings> stage_crossings(const StagedProgram& staged, bool portals);

SkipName skip_name(const StageRoute& route);
SkipLayout layout_of(const std::vector<StageCrossings>& crossings);

}  // namespace ferry::sim
