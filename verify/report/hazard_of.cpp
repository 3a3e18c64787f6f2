#include "verify/report/hazard_of.h"

#include <utility>

#include "sim/choices/strategies.h"
#include "sim/explore/log_verdict.h"
#include "sim/gpu/stream_log.h"

namespace ferry::verify {

HazardFile hazard_of(const RunSpec& spec) {
  HazardFile hazard;
  sim::StreamLog log([&hazard](std::string_view line) { hazard.log.append(line); });
  choices::ReplayedChoices answers(spec.deviations);
  try_spec(spec, &answers, &log);
  explore::LogVerdict found = explore::judge_log(hazard);
  hazard.verdicts = std::move(found.verdicts);
  hazard.schedule = std::move(found.schedule);
  hazard.seen = std::move(found.seen);
  return hazard;
}

}  // namespace ferry::verify
