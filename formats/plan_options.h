// The offloader's options, as a plan file carries them: by name, as integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "shared/options.h"

namespace ferry {

std::vector<std::pair<std::string, std::int64_t>> plan_options(const CoreOptions& options);

// The options that a plan asks for; none where it keeps everything. Throws std::invalid_argument
// where the plan names an option that there is not, or one without sense.
std::optional<CoreOptions> to_options(const Plan& plan);

}  // namespace ferry
