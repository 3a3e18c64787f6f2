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
// The defaults, with the named options changed. Throws std::invalid_argument, like the functions
// below, for an unknown option or a senseless value.
CoreOptions named_options(const NamedOptions& named);

// A plan's options and its choices for the packs that reach the offloader: the forward's, and those
// that recomputed segments pass on. The list is never empty, since an empty one lets all packs
// move; past its end everything stays. Throws also if an entry is missing.
CoreOptions planned_options(const Plan& plan);
// The same; none if the plan moves nothing.
std::optional<CoreOptions> to_options(const Plan& plan);

SavedChoice saved_choice(PlanChoice choice);
// A plan's segments; calls that it does not list run without a checkpoint.
std::shared_ptr<const SegmentPlan> planned_segments(const Plan& plan);

}  // namespace ferry
