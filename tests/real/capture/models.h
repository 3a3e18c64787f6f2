// Small models, one for each thing that a step may do to what it saves.
#pragma once

#include <vector>

#include "tests/real/capture/step.h"

namespace ferry::real::capture {

struct NamedStep {
  const char* name;
  Step (*make)();
};

const std::vector<NamedStep>& all_steps();

// With calls of ferry::checkpoint: each takes what the step computed, as its arguments, in the
// order in which it was computed.
const std::vector<NamedStep>& checkpointed_steps();

}  // namespace ferry::real::capture
