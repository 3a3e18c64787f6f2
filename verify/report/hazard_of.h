// Makes a hazard file (formats/HAZARD.md) of a run: the stream log of the run, the verdicts on it,
// and an order of the device that shows the fault, if one is found. `ferry verify` and hunts write
// it with `--hazard`.
#pragma once

#include "formats/hazard_file.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Makes the run. `system`, `what` and `source` stay empty; the caller fills them in.
HazardFile hazard_of(const RunSpec& spec);

}  // namespace ferry::verify
