// Shrinks the spec of a failing run, so that a report shows a small program. A smaller run counts
// as the same failure if the same oracle objects; its words may differ.
#pragma once

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Returns the smallest spec that it finds to which the same oracle objects. It removes the unusual
// answers, parts of the program and single deviations, and makes about `runs_max` runs at most. If
// no oracle objects to `spec` again, returns `spec` itself.
RunSpec shrink_spec(const RunSpec& spec, const Verdict& verdict, int runs_max = 5000);

}  // namespace ferry::verify
