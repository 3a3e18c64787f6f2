// Small models, one for each thing that a step may do to what it saves.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/real/capture/step.h"

namespace ferry::real::capture {

struct NamedStep {
  const char* name;
  Step (*make)();
};

// For GoogleTest.
inline std::string name_of(const testing::TestParamInfo<NamedStep>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

const std::vector<NamedStep>& all_steps();

// With calls of ferry::checkpoint: each takes what the step computed, as its arguments, in the
// order in which it was computed.
const std::vector<NamedStep>& checkpointed_steps();

}  // namespace ferry::real::capture
