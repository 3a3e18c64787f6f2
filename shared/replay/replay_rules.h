// The rules of operator replay, with a name for each place in its code that asks.
// shared/seam/rules.h says what each rule means. All are true, except in a mutant.
#pragma once

#include "shared/seam/rules.h"

namespace ferry {

class ReplayRules : public Rules {
 public:
  ReplayRules() = default;
  ReplayRules(const Rules& rules) : Rules(rules) {}  // NOLINT(google-explicit-constructor)

  bool frees_unpacked() const { return holds(Rule::kFreeUnpacked); }
  bool frees_at_end() const { return holds(Rule::kFreeAtEnd); }
  bool checks_version() const { return holds(Rule::kCheckVersion); }
  bool refuses_late() const { return holds(Rule::kRefuseLate); }
  bool stops_early() const { return holds(Rule::kStopEarly); }
};

}  // namespace ferry
