#include "verify/mutants/mutants.h"

#include <array>
#include <ostream>

namespace ferry::verify {
namespace {

MutantPart part_of_step(std::size_t step) {
  if (step >= kPipelineSteps) return MutantPart::kState;
  if (step >= kCheckpointSteps) return MutantPart::kPipeline;
  return step >= kOffloadSteps ? MutantPart::kCheckpoint : MutantPart::kOffload;
}

MutantPart part_of_rule(std::size_t rule) {
  constexpr auto kFirst = static_cast<std::size_t>(Rule::kOuterInputs);
  if (rule >= kCheckpointRules) return MutantPart::kPipeline;
  return rule >= kFirst ? MutantPart::kCheckpoint : MutantPart::kOffload;
}

std::string named(std::string_view first, std::string_view second) {
  std::string text(first);
  return text.append(": ").append(second);
}

}  // namespace

std::string_view name(MutantPart part) {
  static constexpr std::array<std::string_view, 5> kNames = {"offload", "checkpoint", "pipeline",
                                                             "state", "beneath"};
  return kNames[static_cast<std::size_t>(part)];
}

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> mutants;
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{static_cast<Step>(step), bend};
      if (!applies(mutation)) continue;
      mutants.push_back({named(name(mutation.step), name(bend)), Rules(), mutation,
                         part_of_step(step), sim::WorldFault::kNoFault});
    }
  }
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    mutants.push_back({named("rule", kRuleNames[rule]), Rules::without(static_cast<Rule>(rule)),
                       std::nullopt, part_of_rule(rule), sim::WorldFault::kNoFault});
  }
  for (std::size_t fault = 1; fault < sim::kWorldFaultNames.size(); ++fault) {
    mutants.push_back({named("world", sim::kWorldFaultNames[fault]), Rules(), std::nullopt,
                       MutantPart::kBeneath, static_cast<sim::WorldFault>(fault)});
  }
  return mutants;
}

}  // namespace ferry::verify
