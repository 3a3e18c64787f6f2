// A run as a hazard file (formats/HAZARD.md): what a scheduler did with its streams, and what is
// wrong with that.
#pragma once

#include "formats/hazard_file.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Makes the run. `system`, `what` and `source` are empty: whose it is, is the caller's to say.
HazardFile hazard_of(const RunSpec& spec);

}  // namespace ferry::verify
