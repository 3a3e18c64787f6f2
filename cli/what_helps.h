// Lists changes that would make a training fit, or make the plan that fits faster. Each line has
// the figures of a plan that was made for it: changes of the training (plan/ways.h), another card,
// and for a model by its name adapters, shorter sequences or a smaller batch (cli/other_models.h).
#pragma once

#include <cstdint>
#include <string>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// The memory that no policy can make smaller.
std::int64_t parameters_and_state(const sim::KindBytes& kinds);

// For a training that no plan fits. `least` is the row that needs the least memory. Returns the
// lines, each after a line end; empty: nothing helps.
std::string helps_to_fit(const PolicyArguments& arguments, const PolicyRequest& request,
                         const plan::PolicyRow& least);

// For a training whose plan fits and is slower than keeping everything. Returns the same.
std::string helps_to_speed(const PolicyRequest& request, const plan::PlanResult& result,
                           const plan::PolicyRow& best);

}  // namespace ferry::cli
