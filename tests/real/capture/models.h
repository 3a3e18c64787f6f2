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

}  // namespace ferry::real::capture
