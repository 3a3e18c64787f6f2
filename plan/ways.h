// What would bring a training into a budget that no plan fits. Each way is planned, as the training
// itself is, with the two policies that need the least memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/program.h"
#include "plan/planner.h"
#include "scenarios/hardware.h"
#include "scenarios/policy.h"

namespace ferry::plan {

enum class WayKind : std::uint8_t {
  kPolicy,      // a policy that was not asked for
  kFused,       // the optimizer's fused implementation, which has no temporaries
  kSlicedLoss,  // sliced_loss.h
  kExpandable,  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: fewer fragments
  kNoState,     // an optimizer without state, SGD: another training
};

inline constexpr std::int64_t kLossSlices = 8;

struct Way {
  WayKind kind{};
  Policy policy{};               // whose plan needs the least so
  std::int64_t least_bytes = 0;  // that least
  bool fits = false;             // the device's memory and the host's
};

struct Ways {
  // What leaves the training's numbers as they are, the way that gives most first, and each next
  // one on top of those before it; until it fits, or the next one would give less than a twentieth
  // of what is missing.
  std::vector<Way> each;
  // The way that does not, by itself, if it gives so much.
  std::optional<Way> no_state;
};

// Whether one of these policies fits on another card, in all that it leaves a process.
bool fits_on(const Hardware& card, const Program& program, const PlanRequest& request);

// `least_bytes`: what the rows of a plan of the request need at least. Nothing is checked for
// hazards. Those that were found by then if the request's `stop` says so.
Ways ways_to_fit(const Program& program, const Hardware& hardware, const PlanRequest& request,
                 std::int64_t least_bytes);

}  // namespace ferry::plan
