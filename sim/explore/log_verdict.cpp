#include "sim/explore/log_verdict.h"

#include <sstream>

#include "formats/line_source.h"
#include "sim/check/happens_before.h"
#include "sim/check/log_check.h"
#include "sim/explore/explorer.h"
#include "sim/explore/recording.h"

namespace ferry::explore {
namespace {

// The same option as in log_check.cpp.
constexpr bool kHostFreeWaits = true;

Recording recording_of(const HazardFile& hazard) {
  Recording recording;
  hazard.each([&recording](std::uint64_t line, const StreamOp& op) {
    recording.number_next(line);
    recording(op);
  });
  return recording;
}

std::vector<check::Hazard> races_of(const HazardFile& hazard) {
  check::HappensBefore checker({.host_free_waits = kHostFreeWaits, .foreign = true});
  hazard.each([&checker](std::uint64_t line, const StreamOp& op) {
    checker.number_next(line);
    checker(op);
  });
  return checker.hazards();
}

bool is_of(const check::Hazard& race, const HazardVerdict& verdict) {
  return name(race.kind) == verdict.kind && race.earlier.op == verdict.earlier &&
         race.later.op == verdict.later;
}

}  // namespace

LogVerdict judge_log(const HazardFile& hazard) {
  LogVerdict found;
  std::istringstream in("\n" + hazard.log);  // stands for the header's line
  LineSource lines(in, hazard.system);
  for (const check::LogViolation& each : check::check_log(lines).violations) {
    found.verdicts.push_back({std::string(name(each.kind)), each.previous_line, each.line});
  }
  if (found.verdicts.empty()) return found;
  const Recording recording = recording_of(hazard);
  const Explorer explorer(recording, kHostFreeWaits);
  for (const check::Hazard& race : races_of(hazard)) {
    if (!is_of(race, found.verdicts.front())) continue;
    const Confirmation confirmed = explorer.confirm(race);
    if (!confirmed.witness) continue;
    found.schedule = to_string(explorer.graph(), confirmed.witness->schedule);
    found.seen = to_string(explorer, *confirmed.witness);
    break;
  }
  return found;
}

std::string seen_in(const HazardFile& hazard) {
  const Recording recording = recording_of(hazard);
  const Explorer explorer(recording, kHostFreeWaits);
  const auto witness = explorer.witness(parse_schedule(explorer.graph(), hazard.schedule));
  return witness ? to_string(explorer, *witness) : "";
}

}  // namespace ferry::explore
