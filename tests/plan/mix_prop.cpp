#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/program_check.h"
#include "plan/mix.h"
#include "plan/planner.h"
#include "plan/survey.h"
#include "tests/plan/support/mixed.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::in_range;
using test::Part;
using test::PartKind;

std::vector<Part> any_parts() {
  std::vector<Part> parts;
  for (int count = *in_range(1, 7); count > 0; --count) {
    static const std::vector<PartKind> kinds = {PartKind::kPlain, PartKind::kSegment,
                                                PartKind::kSegment, PartKind::kNested};
    const PartKind kind = kinds[static_cast<std::size_t>(*in_range(0, 4))];
    const bool takes_input = kind != PartKind::kPlain && *in_range(0, 3) == 0;
    parts.push_back({kind, *in_range(0, 4), takes_input});
  }
  return parts;
}

// Returns a random mix, settled.
Mix any_mix(const Survey& survey, std::int64_t min_bytes) {
  Mix mix = keep_all(survey);
  const auto choice = [](int most) { return static_cast<PlanChoice>(*in_range(0, most)); };
  for (PlanChoice& pack : mix.packs) pack = choice(2);
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    const SurveyedSegment& segment = survey.segments[s];
    mix.recompute[s] = *in_range(0, 3) > 0;
    for (std::size_t i = segment.first; mix.recompute[s] && i < segment.end; ++i) {
      mix.packs[i] = segment.whole ? PlanChoice::kRecompute : choice(3);
    }
    for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
      mix.input_moves[s][i] = *in_range(0, 2) == 0;
    }
  }
  settle(mix, survey, min_bytes);
  return mix;
}

CoreOptions any_windows() {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_tensors = *in_range(1, 8);
  options.prefetch_bytes = *in_range(0, 8) * 1024;
  options.hold_bytes = *in_range(0, 8) * 1024;
  return options;
}

std::int64_t recomputing(const Survey& survey, const Mix& mix) {
  std::int64_t count = 0;
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    const auto begin = mix.packs.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(survey.segments[s].end);
    const auto first = begin + static_cast<std::ptrdiff_t>(survey.segments[s].first);
    count += mix.recompute[s] && std::find(first, end, PlanChoice::kRecompute) != end;
  }
  return count;
}

void expect_safe(const sim::Simulation& run, const sim::Simulation& keep) {
  RC_ASSERT(run.hazards.empty());
  RC_ASSERT(run.errors.empty());
  RC_ASSERT(!run.leftovers.any());
  RC_ASSERT(run.gradients == keep.gradients);
}

TEST(MixProp, TheCoreDoesWhatTheMixSays) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Part> parts = any_parts();
    for (const Part& part : parts) {
      RC_LOG() << "part " << static_cast<int>(part.kind) << " of " << part.layers << "\n";
    }
    const Program program = test::segmented(parts);
    check_program(program, "segmented");
    const Hardware hardware = test::tiny_hardware();
    const Survey found = survey(program, hardware);
    const Mix mix = any_mix(found, 0);
    const auto [run, decisions] = test::run_mix(program, hardware, found, mix, any_windows());
    const auto recomputes = std::count_if(
        decisions.begin(), decisions.end(),
        [](const Decision& decision) { return decision.kind == DecisionKind::kRecompute; });
    RC_CLASSIFY(recomputes > 0, "recomputes");
    RC_CLASSIFY(run.statistics.offloaded_count > 0, "offloads");
    RC_CLASSIFY(run.checkpoints.passed_on > 0, "passes on");
    RC_ASSERT(recomputes == recomputing(found, mix));
    RC_ASSERT(test::counts_of(run) == test::counts_of(plan_entries(found, mix)));
    sim::SimulationOptions keep;
    keep.segments = segment_plan(found, keep_all(found));
    expect_safe(run, sim::simulate(program, hardware, keep));
  }));
}

// The programs have equal forwards, and their backwards save nothing between them. Reentrant
// segments are always recomputed whole.
TEST(MixProp, NoMixOfARandomProgramChangesAGradient) {
  EXPECT_TRUE(rc::check([] {
    test::Recipe recipe = *test::any_recipe();
    recipe.failure = test::StepFailure::kNone;
    recipe.embeds = true;  // otherwise there may be no graph for backward
    recipe.derivatives = 1;
    recipe.segments = true;
    for (test::Layer& layer : recipe.layers) {
      if (layer.kind == test::LayerKind::kNested) recipe.order = MicrobatchOrder::kFbfb;
    }
    const Program program = test::make_program(recipe);
    const Hardware hardware = test::tiny_hardware();
    const Survey found = survey(program, hardware);
    const Mix mix = any_mix(found, 0);
    const auto [run, decisions] = test::run_mix(program, hardware, found, mix, any_windows());
    RC_CLASSIFY(run.checkpoints.recomputes > 0, "recomputes");
    sim::SimulationOptions keep;
    keep.segments = segment_plan(found, keep_all(found));
    const sim::Simulation kept = sim::simulate(program, hardware, keep);
    RC_ASSERT(kept.errors.empty());
    expect_safe(run, kept);
  }));
}

}  // namespace
}  // namespace ferry::plan
