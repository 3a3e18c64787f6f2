// Makes the spec of a failing run smaller.
#pragma once

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Returns a spec to which the same oracle objects, and from which nothing can be taken away. It
// ends after so many runs, with what it has then.
RunSpec shrink_spec(const RunSpec& spec, const Verdict& verdict, int runs_max = 5000);

}  // namespace ferry::verify
