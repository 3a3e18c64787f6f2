#include "verify/mutants/mutants.h"

#include <array>
#include <map>
#include <ostream>

#include "verify/mutants/cases.h"
#include "verify/mutants/tested_mutants.h"

namespace ferry::verify {
namespace {

MutantPart part_of(std::size_t number, std::size_t checkpoints, std::size_t pipelines) {
  if (number >= pipelines) return MutantPart::kPipeline;
  return number >= checkpoints ? MutantPart::kCheckpoint : MutantPart::kOffload;
}

std::string named(std::string_view first, std::string_view second) {
  std::string text(first);
  return text.append(": ").append(second);
}

}  // namespace

std::string_view name(MutantPart part) {
  static constexpr std::array<std::string_view, 4> kNames = {"offload", "checkpoint", "pipeline",
                                                             "beneath"};
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
                         part_of(step, kOffloadSteps, kCheckpointSteps),
                         sim::WorldFault::kNoFault});
    }
  }
  constexpr auto kFirst = static_cast<std::size_t>(Rule::kOuterInputs);
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    mutants.push_back({named("rule", kRuleNames[rule]), Rules::without(static_cast<Rule>(rule)),
                       std::nullopt, part_of(rule, kFirst, kCheckpointRules),
                       sim::WorldFault::kNoFault});
  }
  for (std::size_t fault = 1; fault < sim::kWorldFaultNames.size(); ++fault) {
    mutants.push_back({named("world", sim::kWorldFaultNames[fault]), Rules(), std::nullopt,
                       MutantPart::kBeneath, static_cast<sim::WorldFault>(fault)});
  }
  return mutants;
}

const MutantCase* own_case(const Mutant& mutant) {
  static const std::map<std::string, MutantCase> cases = offload_cases();
  const auto found = cases.find(mutant.name);
  return found == cases.end() ? nullptr : &found->second;
}

std::string_view unit_test(const Mutant& mutant) {
  for (const TestedMutant& each : kTestedMutants) {
    if (each.mutant == mutant.name) return each.test;
  }
  return "";
}

}  // namespace ferry::verify
