// The offloader's options as a plan file has them: by name, as integers. Turns them, and the
// choices of a plan, into the options with which the core runs, on the simulated and on the real
// device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"

namespace ferry {

using NamedOptions = std::vector<std::pair<std::string, std::int64_t>>;

NamedOptions plan_options(const CoreOptions& options);
// Returns the defaults with the named options changed. Throws std::invalid_argument, like
// planned_options and to_options, for an unknown option or an invalid value.
CoreOptions named_options(const NamedOptions& named);

// Returns a plan's options and its choices for the packs that reach the offloader: those of the
// forward, and those that recomputed segments pass on. The list of choices is never empty, because
// an empty list would let all packs move. Packs after its end stay. Also throws if an entry is
// missing.
CoreOptions planned_options(const Plan& plan);
// The same; empty if the plan moves nothing.
std::optional<CoreOptions> to_options(const Plan& plan);

SavedChoice saved_choice(PlanChoice choice);
// Returns a plan's segments. Calls that the plan does not list run without a checkpoint. Throws
// std::out_of_range if an entry names a segment that the plan does not have.
std::shared_ptr<const SegmentPlan> planned_segments(const Plan& plan);

}  // namespace ferry
