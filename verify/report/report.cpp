#include "verify/report/report.h"

#include <sstream>

#include "sim/choices/strategies.h"
#include "sim/explore/diagram.h"
#include "sim/explore/explorer.h"
#include "verify/campaign/closer_look.h"
#include "verify/campaign/replay_line.h"

namespace ferry::verify {
namespace {

class CountAndRecording final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    recording(op);
    count(op);
  }
  Coverage coverage;
  OperationCount count{coverage};
  explore::Recording recording;
};

void explain_race(const check::Hazard& hazard, const explore::Recording& recording,
                  Report& report) {
  const explore::Explorer explorer(recording);
  const explore::Confirmation found = explorer.confirm(hazard);
  report.confirmed = found.result == explore::Confirmation::Result::kConfirmed;
  if (report.confirmed) {
    report.text.append(explore::diagram(explorer, hazard, *found.witness));
  } else {
    report.text.append(report.verdict->words);
    report.text.append(
        hazard.kind == check::HazardKind::kFreeUnderUse
            ? "\nno schedule of this program shows it, but another program could get "
              "the bytes at once and write to them\n"
            : "\nno schedule shows a wrong value; please report this, too\n");
  }
}

// Lists the unusual answers: "unusual  poll 2, failing call 1".
std::string unusual(const choices::ReplayedChoices& answers) {
  std::string line;
  for (std::size_t point = 0; point < choices::kChoicePoints; ++point) {
    if (answers.given()[point] == 0) continue;
    line.append(line.empty() ? "unusual  " : ", ").append(choices::kChoiceNames[point]);
    line.append(" ").append(std::to_string(answers.given()[point]));
  }
  return line.empty() ? line : line + "\n";
}

std::string program_of(const RunSpec& spec) {
  std::ostringstream program;
  if (spec.scheduler && spec.scheduler->program) {
    program << "number " << spec.number << " of the scheduler's own programs";
  } else if (spec.scheduler) {
    program << text_of(spec.trial.recipe)
            << (has_plan(spec.trial) ? "; with a plan of its segments" : "");
  } else if (spec.is_pipeline()) {
    program << spec.pipeline;
  } else {
    program << spec.trial;
  }
  return program.str();
}

// Lists the features that the shrunk program still has. The failure needs each of them.
std::string features(const RunSpec& spec) {
  if (!spec.scheduler || spec.scheduler->program) return "";
  std::string words;
  for (const Feature feature : features_of(spec.trial)) {
    words.append(words.empty() ? "has      " : ", ").append(info(feature).word);
  }
  return words.empty() ? words : words + "\n";
}

}  // namespace

Report explain(const RunSpec& whole, std::string_view again) {
  Report report;
  const RunSpec spec = report.spec = limited(whole);
  CountAndRecording watch;
  choices::ReplayedChoices answers(spec.deviations);
  auto verdict = try_spec(spec, &answers, &watch);
  Coverage orders;
  if (!verdict) verdict = look_closer(spec, orders);
  if (!verdict) {
    report.text = "no oracle objects\n";
    return report;
  }
  report.verdict = verdict;
  report.operations = watch.coverage.operations;
  report.device_operations = watch.coverage.device_operations;
  report.text.append(name(verdict->oracle)).append(": ");
  if (verdict->hazard && check::is_race(verdict->hazard->kind)) {
    explain_race(*verdict->hazard, watch.recording, report);
  } else {
    report.text.append(verdict->words).append("\n");
  }
  report.text.append("\nprogram  ").append(program_of(spec));
  report.text.append("\n         ").append(std::to_string(report.device_operations));
  report.text.append(" device operations, ").append(std::to_string(report.operations));
  report.text.append(" in all\n");
  report.text.append(unusual(answers));
  report.text.append(features(spec));
  report.text.append("again    ").append(again).append(" '").append(to_line(spec));
  report.text.append("'\n");
  return report;
}

}  // namespace ferry::verify
