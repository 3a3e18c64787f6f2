// Steps with calls of ferry::checkpoint: the capture has them as modules, which a plan makes
// segments, and whatever becomes of each saved tensor, both worlds decide the same.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "ferry/checkpoint.h"
#include "formats/outline.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "formats/program_check.h"
#include "plan/mix.h"
#include "plan/planner.h"
#include "plan/survey.h"
#include "tests/real/capture/models.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

bool nests(const NamedStep& step) { return std::string(step.name) == "nested checkpoints"; }

// Module markers of the forward: names as they are entered, and how deep.
struct Markers {
  std::vector<std::string> names;
  std::vector<std::size_t> depths;
  bool nest = true;
};

Markers markers_of(const Program& program) {
  Markers found;
  std::vector<std::string> open;
  const auto forward = forward_code(program);
  if (!forward) return found;
  for (const Statement& statement : program.codes[*forward].statements) {
    const auto* const module = std::get_if<Module>(&statement.action);
    if (!module) continue;
    if (module->enter) {
      found.names.push_back(module->name);
      found.depths.push_back(open.size());
      open.push_back(module->name);
    } else {
      found.nest &= !open.empty() && open.back() == module->name;
      if (!open.empty()) open.pop_back();
    }
  }
  found.nest &= open.empty();
  return found;
}

Program without_markers(Program program) {
  for (Code& code : program.codes) {
    std::erase_if(code.statements, [](const Statement& statement) {
      return std::holds_alternative<Module>(statement.action);
    });
  }
  return program;
}

class CheckpointedTest : public ::testing::TestWithParam<NamedStep> {
 protected:
  CheckpointedTest() {
    at::set_num_threads(1);  // others spin while they wait
    torch::manual_seed(1);
    step_ = GetParam().make();
    captured_ = capture_of(step_);
    program_ = plan::with_segments(captured_);
  }
  bool nests() const { return capture::nests(GetParam()); }
  plan::Survey survey() const { return plan::survey(program_, find_hardware("rtx4090")); }

  Step step_;
  Program captured_;
  Program program_;  // outlined
};

TEST_P(CheckpointedTest, CallsAreModulesInTheirOrderAndNest) {
  const Markers markers = markers_of(captured_);
  EXPECT_TRUE(markers.nest);
  ASSERT_GE(markers.names.size(), 1u);
  std::vector<std::string> outer;
  for (std::size_t i = 0; i < markers.names.size(); ++i) {
    EXPECT_EQ(markers.names[i], "checkpoint." + std::to_string(i));
    if (markers.depths[i] == 0) outer.push_back(markers.names[i]);
  }
  EXPECT_EQ(std::set<std::size_t>(markers.depths.begin(), markers.depths.end()).size(),
            nests() ? 2u : 1u);
  EXPECT_EQ(segment_modules(captured_), markers.names);
  std::vector<std::string> segments;
  for (const Code& code : program_.codes) {
    if (code.name.starts_with("checkpoint.")) segments.push_back(code.name);
  }
  EXPECT_EQ(segments, outer);
  EXPECT_NO_THROW(check_program(program_, "outlined"));
}

// Two captures are the same bytes, and recording leaves the checkpoints alone: they just run.
TEST_P(CheckpointedTest, ACaptureRunsThemAsTheyAre) {
  const std::int64_t before = checkpoint_statistics().segments;
  step_.module->zero_grad();
  EXPECT_EQ(to_text(capture_of(step_)), to_text(captured_));
  EXPECT_EQ(checkpoint_statistics().segments, before);
}

TEST_P(CheckpointedTest, KeptTheyAreWhatTheyWereWithoutMarkers) {
  const auto keep = [](const Program& program, bool segments) {
    sim::SimulationOptions options;
    if (segments) options.segments = std::make_shared<const SegmentPlan>(SegmentPlan::closed());
    return sim::simulate(program, find_hardware("rtx4090"), options);
  };
  const sim::Simulation bare = keep(without_markers(captured_), false);
  const sim::Simulation marked = keep(captured_, false);
  const sim::Simulation outlined = keep(program_, true);
  for (const sim::Simulation* const run : {&bare, &marked, &outlined}) {
    EXPECT_TRUE(run->errors.empty());
    EXPECT_TRUE(run->hazards.empty());
    EXPECT_FALSE(run->leftovers.any());
    EXPECT_EQ(run->device_peak_bytes, bare.device_peak_bytes);
    EXPECT_EQ(run->step_ns, bare.step_ns);
  }
  EXPECT_EQ(marked.digest, bare.digest);
}

// Without a plan those inside others would be checkpoints, too.
class FlatCheckpointedTest : public CheckpointedTest {};

// Every call recomputes, as without a plan; the offloader sees their inputs.
TEST_P(FlatCheckpointedTest, BothWorldsDecideTheSameWhereAllAreRecomputed) {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_tensors = 2;
  options.prefetch_bytes = 8192;
  for (const bool moves : {true, false}) {
    if (!moves) options.offload = {false};
    Offload offload(moves ? real_options(options)
                          : OffloadOptions().min_bytes(std::int64_t{1} << 40).decisions(true));
    const auto real = run_real(step_, offload);
    EXPECT_GT(
        std::count_if(real.begin(), real.end(),
                      [](const Decision& each) { return each.kind == DecisionKind::kRecompute; }),
        0);
    EXPECT_EQ(difference(real, run_simulated(program_, options)), "") << moves;
  }
}

// Any mix.

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

 private:
  std::mt19937 random_;
};

plan::Mix any_mix(const plan::Survey& survey, std::int64_t min_bytes, Dice& draw) {
  plan::Mix mix = plan::keep_all(survey);
  for (PlanChoice& pack : mix.packs) pack = static_cast<PlanChoice>(draw.below(2));
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    mix.recompute[s] = draw.below(4) > 0;
    for (std::size_t i = survey.segments[s].first; mix.recompute[s] && i < survey.segments[s].end;
         ++i) {
      mix.packs[i] = static_cast<PlanChoice>(draw.below(3));
    }
    for (std::size_t i = 0; i < mix.input_moves[s].size(); ++i) {
      mix.input_moves[s][i] = draw.below(2) == 0;
    }
  }
  plan::settle(mix, survey, min_bytes);
  return mix;
}

CoreOptions any_options(Dice& draw) {
  CoreOptions options;
  options.min_bytes = draw.below(2) == 0 ? 0 : 1024;
  options.window_tensors = 1 + draw.below(6);
  options.prefetch_bytes = draw.below(6) * 4096;
  options.hold_bytes = draw.below(4) * 4096;
  if (draw.below(3) == 0) options.reload_pool = ReloadPool::kCopyStream;
  return options;
}

Plan plan_of(const plan::Survey& survey, const plan::Mix& mix, const CoreOptions& options) {
  Plan plan;
  plan.options = plan_options(options);
  plan.segments = plan::plan_segments(mix, std::vector<std::string>(survey.segments.size()));
  plan.entries = plan::plan_entries(survey, mix);
  return plan;
}

CheckpointStatistics since(const CheckpointStatistics& before) {
  CheckpointStatistics now = checkpoint_statistics();
  now.segments -= before.segments;
  now.recomputes -= before.recomputes;
  now.stopped_early -= before.stopped_early;
  now.saved -= before.saved;
  now.kept -= before.kept;
  now.passed_on -= before.passed_on;
  now.alive -= before.alive;
  return now;
}

void expect_same(const CheckpointStatistics& real, const CheckpointStatistics& simulated) {
  EXPECT_EQ(real.segments, simulated.segments);
  EXPECT_EQ(real.recomputes, simulated.recomputes);
  EXPECT_EQ(real.stopped_early, simulated.stopped_early);
  EXPECT_EQ(real.saved, simulated.saved);
  EXPECT_EQ(real.kept, simulated.kept);
  EXPECT_EQ(real.passed_on, simulated.passed_on);
  EXPECT_EQ(real.alive, 0);
}

TEST_P(CheckpointedTest, BothWorldsDecideTheSameUnderAnyMix) {
  const plan::Survey found = survey();
  ASSERT_GE(found.segments.size(), 1u);
  run_real(step_, Offload(plan_of(found, plan::keep_all(found), CoreOptions()), OffloadOptions()));
  const auto expected = gradients(step_);
  std::map<DecisionKind, int> decisions;
  for (std::uint32_t seed = 0; seed < 16 && !HasFailure(); ++seed) {
    Dice draw(seed);
    const CoreOptions options = any_options(draw);
    const Plan plan = plan_of(found, any_mix(found, options.min_bytes, draw), options);
    const CheckpointStatistics before = checkpoint_statistics();
    const auto real = run_real(step_, Offload(plan, OffloadOptions().decisions(true)));
    const Simulated simulated =
        run_simulated(program_, planned_options(plan), {}, planned_segments(plan));
    EXPECT_EQ(difference(real, simulated), "") << "seed " << seed;
    expect_same(since(before), simulated.result.checkpoints);
    EXPECT_TRUE(same_bits(gradients(step_), expected)) << "seed " << seed;
    for (const Decision& decision : real) ++decisions[decision.kind];
  }
  EXPECT_GE(decisions[DecisionKind::kRecompute], 8);
  EXPECT_GT(decisions[DecisionKind::kUnpack], 20);
  EXPECT_GT(decisions[DecisionKind::kPrefetch], 0);
  if (HasFailure()) std::cerr << to_text(program_);
}

INSTANTIATE_TEST_SUITE_P(Steps, CheckpointedTest, ::testing::ValuesIn(checkpointed_steps()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Steps, FlatCheckpointedTest, ::testing::ValuesIn([] {
                           auto steps = checkpointed_steps();
                           std::erase_if(steps, nests);
                           return steps;
                         }()),
                         name_of);

// Its inputs are what it was handed, each as often.
TEST(Checkpointed, ACallTakesWhatItWasHanded) {
  torch::manual_seed(1);
  const auto layer = std::make_shared<torch::nn::LinearImpl>(16, 16);
  const auto x = torch::randn({8, 16});
  const Step step{layer, {{"x", x}}, [layer, x] {
                    const auto y = x.mm(layer->weight);
                    const auto block = [&](const torch::Tensor& in, const torch::Tensor&) {
                      return torch::linear(in, layer->weight).sin() * y;
                    };
                    checkpoint(block, x, x).sum().backward();
                  }};
  const Program program = plan::with_segments(capture_of(step));
  const plan::Survey found = plan::survey(program, find_hardware("rtx4090"));
  ASSERT_EQ(found.segments.size(), 1u);
  ASSERT_EQ(found.segments[0].inputs.size(), 2u);
  for (const plan::PackedTensor& input : found.segments[0].inputs) EXPECT_TRUE(input.global);
}

// The comparison sees a checkpointer that decides otherwise.
TEST(Checkpointed, AnotherCheckpointerDecidesOtherwise) {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_tensors = 2;
  for (const Rule rule : {Rule::kOuterInputs, Rule::kTaskKey}) {
    std::size_t different = 0;
    for (const auto& [name, make] : checkpointed_steps()) {
      torch::manual_seed(1);
      const Step step = make();
      const Program program = plan::with_segments(capture_of(step));
      const auto real = run_real(step, options);
      different += run_simulated(program, options, Rules::without(rule)).decisions != real ? 1 : 0;
    }
    EXPECT_GT(different, 0u) << ferry::name(rule);
  }
}

}  // namespace
}  // namespace ferry::real::capture
