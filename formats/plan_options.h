// The offloader's options, as a plan file carries them: by name, as integers.
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
// The defaults, but for those named. Throws std::invalid_argument, here and below, where one is
// named that there is not, or makes no sense.
CoreOptions named_options(const NamedOptions& named);

// A plan's options and its choices among the packs that reach the offloader: the forward's, and
// those that recomputed segments pass on. Its list of choices is never empty, which would mean that
// all may move; past its end everything stays. Throws also where an entry is missing.
CoreOptions planned_options(const Plan& plan);
// The same; none where nothing of the plan moves.
std::optional<CoreOptions> to_options(const Plan& plan);

SavedChoice saved_choice(PlanChoice choice);
// A plan's segments; what it does not list just runs.
std::shared_ptr<const SegmentPlan> planned_segments(const Plan& plan);

}  // namespace ferry
