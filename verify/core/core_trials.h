// Runs Ferry's core for campaigns: on programs (try_core.h), on pipelines (try_pipeline.h), and in
// parts by hand (try_saves.h, try_exempt.h, bends.h). Campaigns reach the core only through this
// object, so that a hunt of another scheduler does not link the core (run_spec.h).
#pragma once

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

const CoreTrials& core_trials();

}  // namespace ferry::verify
