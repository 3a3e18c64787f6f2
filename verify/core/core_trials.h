// Ferry's core on trial, for the campaigns that try it: programs (try_core.h), pipelines
// (try_pipeline.h), and parts of it by hand.
#pragma once

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

const CoreTrials& core_trials();

}  // namespace ferry::verify
