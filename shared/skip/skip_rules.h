// The rules of skip tensors, with a name for each place in their code that asks.
// shared/seam/rules.h says what each rule means. All are true, except in a mutant.
#pragma once

#include "shared/seam/rules.h"

namespace ferry {

class SkipRules : public Rules {
 public:
  SkipRules(const Rules& rules) : Rules(rules) {}  // NOLINT(google-explicit-constructor)

  bool gives_up_popped() const { return holds(Rule::kGiveUpPopped); }
  bool forgets_restash() const { return holds(Rule::kForgetRestash); }
  bool owns_popped() const { return holds(Rule::kOwnPopped); }
  bool joins_stashed() const { return holds(Rule::kJoinStashed); }
  bool orders_pops() const { return holds(Rule::kOrderPops); }
  bool orders_portals() const { return holds(Rule::kOrderPortals); }
  bool wants_pops() const { return holds(Rule::kPopStashed); }
  bool keeps_spaces_apart() const { return holds(Rule::kSpacesApart); }
};

}  // namespace ferry
