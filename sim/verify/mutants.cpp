#include "sim/verify/mutants.h"

#include <array>
#include <map>
#include <ostream>

#include "sim/verify/cases/cases.h"
#include "sim/verify/judge.h"
#include "sim/verify/pipeline_trial.h"

namespace ferry::verify {
namespace {

MutantWorld world_of(std::size_t number, std::size_t checkpoints, std::size_t pipelines) {
  if (number >= pipelines) return MutantWorld::kPipeline;
  return number >= checkpoints ? MutantWorld::kCheckpoint : MutantWorld::kOffload;
}

std::string named(std::string_view first, std::string_view second) {
  std::string text(first);
  return text.append(": ").append(second);
}

}  // namespace

std::string_view name(MutantWorld world) {
  static constexpr std::array<std::string_view, 3> kNames = {"offload", "checkpoint", "pipeline"};
  return kNames[static_cast<std::size_t>(world)];
}

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> mutants;
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{static_cast<Step>(step), bend};
      if (!applies(mutation)) continue;
      mutants.push_back({named(name(mutation.step), name(bend)), Rules(), mutation,
                         world_of(step, kOffloadSteps, kCheckpointSteps)});
    }
  }
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    mutants.push_back(
        {named("rule", kRuleNames[rule]), Rules::without(static_cast<Rule>(rule)), std::nullopt,
         world_of(rule, static_cast<std::size_t>(Rule::kOuterInputs), kCheckpointRules)});
  }
  return mutants;
}

const std::string* equivalent_because(const Mutant& mutant) {
  static const std::map<std::string, std::string> list = {
      {"rule: release late",
       "the event is recorded after the node: waiting for it a node early costs overlap, not "
       "safety"},
  };
  const auto found = list.find(mutant.name);
  return found == list.end() ? nullptr : &found->second;
}

const Case* own_case(const Mutant& mutant) {
  static const std::map<std::string, Case> cases = [] {
    std::map<std::string, Case> all = offload_cases();
    all.merge(checkpoint_cases());
    all.merge(pipeline_cases());
    return all;
  }();
  const auto found = cases.find(mutant.name);
  return found == cases.end() ? nullptr : &found->second;
}

std::optional<Verdict> try_mutant(const Mutant& mutant, std::uint64_t seed, std::uint64_t number) {
  Draws draws(seed, number);
  if (mutant.world == MutantWorld::kPipeline) {
    return try_pipeline(draw_pipeline_trial(draws), {mutant.rules, mutant.mutation});
  }
  return try_core(draw_trial(draws), {mutant.rules, mutant.mutation});
}

std::optional<Kill> hunt(const Mutant& mutant, std::int64_t programs, std::uint64_t seed) {
  for (std::int64_t i = 0; i < programs; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    if (auto verdict = try_mutant(mutant, seed, number)) {
      return Kill{std::move(*verdict), number, i + 1};
    }
  }
  return std::nullopt;
}

}  // namespace ferry::verify
