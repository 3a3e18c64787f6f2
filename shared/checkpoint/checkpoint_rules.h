// The rules of checkpoints, each with the name by which their code asks. shared/seam/rules.h says
// what each rule means (that of spans, kRefuseLate, is not here). All are true, except in a mutant.
#pragma once

#include "shared/seam/rules.h"

namespace ferry {

class CheckpointRules : public Rules {
 public:
  CheckpointRules(const Rules& rules) : Rules(rules) {}  // NOLINT(google-explicit-constructor)

  bool saves_inputs_outside() const { return holds(Rule::kOuterInputs); }
  bool stops_at_last() const { return holds(Rule::kStopAtLast); }
  bool stops_early() const { return holds(Rule::kStopEarly); }
  bool keys_by_task() const { return holds(Rule::kTaskKey); }
  bool keys_by_thread() const { return holds(Rule::kThreadKey); }
  bool repeats_outside() const { return holds(Rule::kFreshOutside); }
  bool keys_by_group() const { return holds(Rule::kGroupKey); }
  bool frees_unpacked() const { return holds(Rule::kFreeUnpacked); }
  bool frees_unneeded() const { return holds(Rule::kFreeUnneeded); }
  bool frees_at_end() const { return holds(Rule::kFreeAtEnd); }
  bool refuses_twice() const { return holds(Rule::kRefuseTwice); }
  bool replays_random() const { return holds(Rule::kReplayRandom); }
  bool replays_ambient() const { return holds(Rule::kReplayAmbient); }
  bool recomputes_with_grad() const { return holds(Rule::kRecomputeGrad); }
  bool returns_to_stream() const { return holds(Rule::kForwardStream); }
  bool checks_recompute() const { return holds(Rule::kCheckRecompute); }
  bool skips_dead() const { return holds(Rule::kSkipDead); }
  bool keeps_chosen() const { return holds(Rule::kKeepChosen); }
  bool chooses_once() const { return holds(Rule::kFirstChoice); }
  bool serves_unfinished() const { return holds(Rule::kUnfinished); }
  bool detaches_reentrant() const { return holds(Rule::kDetachReentrant); }
  bool refuses_reentrant() const { return holds(Rule::kRefuseReentrant); }
  bool keeps_outputs() const { return holds(Rule::kKeepOutputs); }
  bool checks_outputs() const { return holds(Rule::kCheckOutputs); }
  bool leaves_last_plain() const { return holds(Rule::kLastPlain); }
};

}  // namespace ferry
