// Shrinks the spec of a failing run, so that a report shows a small program. A smaller run counts
// as the same failure if the same oracle objects; its words may differ.
#pragma once

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Returns a smaller spec to which the same oracle objects, and from which nothing more can be
// removed. After `runs_max` runs it returns the smallest spec found so far.
RunSpec shrink_spec(const RunSpec& spec, const Verdict& verdict, int runs_max = 5000);

}  // namespace ferry::verify
