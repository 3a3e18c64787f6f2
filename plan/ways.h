// Finds changes to a training that would bring it into a budget that no plan fits, or that would
// make the plan that fits faster: a policy, the optimizer's state on the host, a fused optimizer, a
// sliced loss, expandable segments, an optimizer without state. `ferry plan` proposes them to the
// user (cli/what_helps.h). Each change is planned like the training itself, with a few policies
// that need no search: to fit, those that need the least memory (`offload`, and
// `checkpoint-offload` if there are segments). Hazards are not checked.
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
  kPolicy,      // a policy that was not requested
  kHostState,   // the optimizer's state on the host (torch_ferry.optimizer)
  kInBackward,  // the same, and each parameter is updated in backward
  kFused,       // the optimizer's fused implementation, which has no temporaries
  kSlicedLoss,  // the loss in slices (sliced_loss.h)
  kExpandable,  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: fewer fragments
  kNoState,     // SGD, an optimizer without state: this changes the training's results
};

// Number of slices for kSlicedLoss. Larger: less memory for the loss.
inline constexpr std::int64_t kLossSlices = 8;

// A change, and what the training needs with it.
struct Way {
  WayKind kind{};
  Policy policy{};               // the policy that is then the best
  std::int64_t least_bytes = 0;  // the device memory that its plan needs
  sim::Time step_ns = 0;
  bool fits = false;  // it fits the device and the host
};

struct Ways {
  // Changes that leave the training's results as they are, the most effective first. Each one is
  // planned together with those before it. The list ends when the training fits, or when no change
  // would save a twentieth of the missing bytes.
  std::vector<Way> each;
  // kNoState alone, if it saves at least a twentieth of the missing bytes.
  std::optional<Way> no_state;
};

// True if a policy fits on another card, in all memory that the card leaves a process.
bool fits_on(const Hardware& card, const Program& program, const PlanRequest& request);
// Returns the time of a step if the training fits there as it is, with nothing offloaded or
// recomputed.
std::optional<sim::Time> keeps_on(const Hardware& card, const Program& program,
                                  const PlanRequest& request);

// Returns the policy that needs the least memory; no value: none runs, or the search was stopped.
// `best` is searched for only if the others need up to a quarter more than the budget: it seldom
// gives more.
std::optional<Way> least_way(const Program& program, const Hardware& hardware,
                             const PlanRequest& request);

// `least_bytes` is the least memory that the rows of the request's plan need. If the request's
// `stop` returns true, the changes found so far are returned.
Ways ways_to_fit(const Program& program, const Hardware& hardware, const PlanRequest& request,
                 std::int64_t least_bytes);

// Returns the changes with each of which, alone, a step in the budget would take at least 2 % less
// than `step_ns`; the fastest first. They leave the training's results as they are.
std::vector<Way> ways_to_speed(const Program& program, const Hardware& hardware,
                               const PlanRequest& request, sim::Time step_ns);

}  // namespace ferry::plan
