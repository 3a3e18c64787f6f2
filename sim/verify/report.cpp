#include "sim/verify/report.h"

#include <sstream>

#include "sim/explore/diagram.h"
#include "sim/explore/explorer.h"
#include "sim/strategies.h"
#include "sim/verify/closer_look.h"

namespace ferry::verify {
namespace {

class Watch final : public sim::StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    recording(op);
    count(op);
  }
  Coverage coverage;
  OperationCount count{coverage};
  sim::Recording recording;
};

void explain_race(const sim::Hazard& hazard, const sim::Recording& recording, Report& report) {
  const sim::Explorer explorer(recording);
  const sim::Confirmation found = explorer.confirm(hazard);
  report.confirmed = found.verdict == sim::Verdict::kConfirmed;
  if (report.confirmed) {
    report.text.append(sim::diagram(explorer, hazard, *found.witness));
  } else {
    report.text.append(report.verdict.words);
    report.text.append("\nno schedule shows another value: please report this, too\n");
  }
}

// "unusual  poll 2, failing call 1": the answers that were given.
std::string unusual(const sim::ReplayedChoices& answers) {
  std::string line;
  for (std::size_t point = 0; point < sim::kChoicePoints; ++point) {
    if (answers.given()[point] == 0) continue;
    line.append(line.empty() ? "unusual  " : ", ").append(sim::kChoiceNames[point]);
    line.append(" ").append(std::to_string(answers.given()[point]));
  }
  return line.empty() ? line : line + "\n";
}

}  // namespace

Report explain(const Attempt& attempt) {
  Report report;
  report.attempt = attempt;
  Watch watch;
  sim::ReplayedChoices answers(attempt.deviations);
  auto verdict = try_attempt(attempt, &answers, &watch);
  Coverage orders;
  if (!verdict) verdict = look_closer(attempt, orders);
  if (!verdict) {
    report.text = "no oracle objects\n";
    return report;
  }
  report.verdict = *verdict;
  report.operations = watch.coverage.operations;
  report.device_operations = watch.coverage.device_operations;
  report.text.append(verdict->oracle).append(": ");
  if (verdict->hazard && sim::is_race(verdict->hazard->kind)) {
    explain_race(*verdict->hazard, watch.recording, report);
  } else {
    report.text.append(verdict->words).append("\n");
  }
  std::ostringstream program;
  if (attempt.scheduler && attempt.scheduler->program) {
    program << "number " << attempt.number << " of the scheduler's own";
  } else if (attempt.is_pipeline()) {
    program << attempt.pipeline;
  } else {
    program << attempt.trial;
  }
  report.text.append("\nprogram  ").append(program.str());
  report.text.append("\n         ").append(std::to_string(report.device_operations));
  report.text.append(" device operations, ").append(std::to_string(report.operations));
  report.text.append(" in all\n");
  report.text.append(unusual(answers));
  report.text.append("again    ferry verify --replay '").append(to_line(attempt));
  report.text.append("'\n");
  return report;
}

}  // namespace ferry::verify
