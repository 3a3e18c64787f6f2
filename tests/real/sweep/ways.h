// The ways of running a step that are compared with plain.
#pragma once

#include <string>
#include <vector>

#include "tests/real/sweep/step.h"

namespace ferry::sweep {

struct NamedWay {
  std::string name;
  Way run;
  Backwards backwards = Backwards::kSeveral;
};

Way plain();

// All of them, or the two that a quick look takes: an offload with nothing in the window, and a
// checkpoint with early stop.
std::vector<NamedWay> ways(bool all);

}  // namespace ferry::sweep
