#include "verify/oracles/hazards.h"

namespace ferry::verify {

std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards) {
  if (hazards.empty()) return std::nullopt;
  const check::Hazard& hazard = hazards.front();
  Oracle oracle = check::is_race(hazard.kind) ? Oracle::kHappensBefore : Oracle::kLifetime;
  if (hazard.kind == check::HazardKind::kValue) oracle = Oracle::kValue;
  if (hazard.kind == check::HazardKind::kDeadlock) oracle = Oracle::kLiveness;
  if (hazard.kind == check::HazardKind::kLimit) oracle = Oracle::kPool;
  return Verdict{oracle, to_string(hazard), hazard};
}

bool forgive_frees(std::vector<check::Hazard>& hazards, Uses uses) {
  return std::erase_if(hazards, [uses](const check::Hazard& hazard) {
           return hazard.kind == check::HazardKind::kFreeUnderUse &&
                  (uses == Uses::kOfAll || hazard.earlier.step == Step::kUser);
         }) > 0;
}

}  // namespace ferry::verify
