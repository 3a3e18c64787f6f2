// What an oracle says of a run that it objects to.
#pragma once

#include <optional>
#include <string>

#include "sim/check/hazard.h"

namespace ferry::verify {

struct Verdict {
  std::string oracle;  // "happens-before", "lifetime", "value", "leak", ...
  std::string words;
  std::optional<check::Hazard> hazard = {};  // where it is one
};

}  // namespace ferry::verify
