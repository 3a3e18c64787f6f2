// The rules of pipelines, with a name for each place in their code that asks. shared/seam/rules.h
// says what each rule means. All are true, except in a mutant.
#pragma once

#include "shared/seam/rules.h"

namespace ferry {

class PipelineRules : public Rules {
 public:
  PipelineRules(const Rules& rules) : Rules(rules) {}  // NOLINT(google-explicit-constructor)

  bool orders_microbatches() const { return holds(Rule::kOrderMicrobatches); }
  bool recomputes_early() const { return holds(Rule::kRecomputeEarly); }
  bool takes_callers_mode() const { return holds(Rule::kCallersMode); }
  bool checkpoints_some() const { return holds(Rule::kCheckpointSome); }
  bool chooses_stages() const { return holds(Rule::kCheckpointStages); }
  bool puts_inputs_away() const { return holds(Rule::kPutAway); }
  bool refuses_rewriting() const { return holds(Rule::kRefuseRewriting); }
  bool refuses_sharing() const { return holds(Rule::kRefuseSharing); }
  bool balances_costs() const { return holds(Rule::kBalanceCosts); }
};

}  // namespace ferry
