#include "verify/oracles/stage_states.h"

namespace ferry::verify {

void StageStates::runs(std::size_t stage, std::size_t microbatch, bool again,
                       const StageState& found) {
  const auto [first, is_first] = first_.emplace(std::pair(stage, microbatch), found.random);
  const std::string what = wrong(!is_first, again, found, first->second);
  if (what.empty()) return;
  complaint_ = "stage " + std::to_string(stage + 1) + (is_first ? " runs" : " recomputes") +
               " micro-batch " + std::to_string(microbatch) + " " + what;
}

std::string StageStates::wrong(bool second, bool again, const StageState& found,
                               std::uint64_t first) const {
  if (found.ambient != callers_.ambient) return "without the caller's autocast";
  const bool grad_mode = second || (callers_.grad_mode && !again);
  if (found.grad_mode != grad_mode) return grad_mode ? "without grad mode" : "with grad mode";
  if (found.checkpointing != (again && !second)) {
    return found.checkpointing ? "as if checkpointed" : "as if not checkpointed";
  }
  if (found.recomputing != second) {
    return found.recomputing ? "as if recomputed" : "as if not recomputed";
  }
  if (!second || !callers_.draws) return "";
  if (callers_.preserves && found.random != first) return "with other random numbers";
  if (!callers_.preserves && found.random <= first) return "with old random numbers";
  return "";
}

}  // namespace ferry::verify
