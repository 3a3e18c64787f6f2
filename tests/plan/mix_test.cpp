#include "plan/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/plan_options.h"
#include "formats/program_check.h"
#include "plan/survey.h"
#include "tests/plan/support/mixed.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using test::Part;
using test::PartKind;

constexpr std::int64_t kTensor = 2048;  // bytes of each tensor
using Bits = std::vector<bool>;

Program made(const std::vector<Part>& parts) {
  const Program program = test::segmented(parts);
  check_program(program, "segmented");
  return program;
}
Survey surveyed(const std::vector<Part>& parts) {
  return survey(made(parts), test::tiny_hardware());
}

// The range of saved tensors of each segment.
using Bounds = std::vector<std::pair<std::size_t, std::size_t>>;
Bounds bounds(const Survey& survey) {
  Bounds found;
  for (const SurveyedSegment& segment : survey.segments) {
    found.emplace_back(segment.first, segment.end);
  }
  return found;
}

CoreOptions everything() {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_tensors = 1;
  return options;
}

// A layer saves x, w and h. Returns a mix that recomputes all saves of the given segments.
Mix recomputing(const Survey& survey, const Bits& segments) {
  Mix mix = keep_all(survey);
  mix.recompute = segments;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const SurveyedSegment& segment = survey.segments[s];
    for (std::size_t i = segment.first; segments[s] && i < segment.end; ++i) {
      mix.packs[i] = PlanChoice::kRecompute;
    }
  }
  return mix;
}

// The core does what the plan's entries say, also if it gets the mix from a plan file, and no
// gradient changes.
void expect_agreement(const std::vector<Part>& parts, const Mix& mix) {
  const Program program = made(parts);
  const Survey found = survey(program, test::tiny_hardware());
  const std::vector<PlanEntry> entries = plan_entries(found, mix);
  const auto [run, decisions] =
      test::run_mix(program, test::tiny_hardware(), found, mix, everything());
  for (const check::Hazard& hazard : run.hazards) ADD_FAILURE() << to_string(hazard);
  for (const sim::ProgramError& error : run.errors) ADD_FAILURE() << error.message;
  EXPECT_FALSE(run.leftovers.any());
  EXPECT_EQ(run.gradients, sim::simulate(program, test::tiny_hardware(), {}).gradients);
  EXPECT_EQ(test::counts_of(run), test::counts_of(entries));
  EXPECT_EQ(run.checkpoints.segments, std::count(mix.recompute.begin(), mix.recompute.end(), true));

  Plan plan;
  plan.options = plan_options(everything());
  plan.segments = plan_segments(mix, std::vector<std::string>(mix.recompute.size()));
  plan.entries = entries;
  sim::SimulationOptions planned;
  planned.offload = planned_options(plan);
  EXPECT_EQ(planned.offload->offload, offload_choices(found, mix));
  std::vector<Decision> again;
  planned.offload->log = [&again](const Decision& decision) { again.push_back(decision); };
  planned.segments = planned_segments(plan);
  EXPECT_EQ(sim::simulate(program, test::tiny_hardware(), planned).digest, run.digest);
  EXPECT_EQ(again, decisions);
}

TEST(SurveyTest, ASegmentIsItsInputsAndItsPacks) {
  const Survey found =
      surveyed({{PartKind::kPlain, 1}, {PartKind::kSegment, 2, true}, {PartKind::kSegment, 1}});
  EXPECT_EQ(found.packs.size(), 12u);
  EXPECT_EQ(bounds(found), (Bounds{{3, 9}, {9, 12}}));
  const SurveyedSegment& segment = found.segments[0];
  EXPECT_FALSE(segment.whole);
  ASSERT_EQ(segment.inputs.size(), 2u);
  EXPECT_EQ(segment.inputs[0].node, "checkpoint");
  EXPECT_EQ(segment.inputs[0].layout, contiguous_layout(DType::kBF16, {1024}));
  EXPECT_EQ(segment.inputs[0].storage_bytes, kTensor);
  EXPECT_EQ(segment.inputs[0].group, found.packs[3].group);  // the first layer saves it too
  EXPECT_FALSE(segment.inputs[0].global);
  EXPECT_TRUE(segment.inputs[1].global);
  EXPECT_FALSE(segment.inputs[1].exempt);
  EXPECT_NE(segment.inputs[1].group, segment.inputs[0].group);
  EXPECT_TRUE(found.packs[4].exempt);  // a weight
}

TEST(SurveyTest, ASegmentMayBeginOrEndTheForwardAndSaveNothing) {
  EXPECT_EQ(bounds(surveyed({{}, {}})), (Bounds{{0, 3}, {3, 6}}));
  const Survey found = surveyed({{PartKind::kSegment, 0},
                                 {PartKind::kSegment, 0},
                                 {PartKind::kSegment, 1},
                                 {PartKind::kSegment, 0}});
  EXPECT_EQ(bounds(found), (Bounds{{0, 0}, {0, 0}, {0, 3}, {3, 3}}));
  for (const SurveyedSegment& segment : found.segments) EXPECT_EQ(segment.inputs.size(), 1u);
}

TEST(SurveyTest, ASegmentInsideAnotherIsNone) {
  EXPECT_EQ(bounds(surveyed({{PartKind::kNested, 2}, {}})), (Bounds{{0, 6}, {6, 9}}));
}

TEST(SurveyTest, TheReentrantVariantIsAllOrNothing) {
  const Survey found = surveyed({{PartKind::kReentrant}, {}});
  EXPECT_EQ(bounds(found), (Bounds{{0, 3}, {3, 6}}));
  EXPECT_TRUE(found.segments[0].whole);
  EXPECT_FALSE(found.segments[1].whole);
}

TEST(SurveyTest, HooksSeeNothingOfWhatIsExcluded) {
  const Survey found = surveyed({{PartKind::kExcluded}, {}});
  EXPECT_EQ(bounds(found), (Bounds{{0, 0}, {0, 3}}));
  EXPECT_TRUE(found.segments[0].inputs.empty());
}

TEST(SurveyTest, OnlyTheFirstForwardCounts) {
  Program program = made({{}, {}});
  Code& main = program.codes[program.main];
  const std::vector<Statement> step = main.statements;
  main.statements.insert(main.statements.end(), step.begin(), step.end());
  EXPECT_EQ(bounds(survey(program, test::tiny_hardware())), (Bounds{{0, 3}, {3, 6}}));
}

TEST(SurveyTest, AProgramWithoutSegmentsHasNone) {
  EXPECT_TRUE(surveyed({{PartKind::kPlain, 3}}).segments.empty());
}

const std::vector<Part> kThree = {
    {PartKind::kPlain, 1}, {}, {PartKind::kSegment, 2, true}, {PartKind::kPlain, 1}, {}};

TEST(MixTest, ToKeepEverythingIsNoCheckpointAndNoMove) {
  const Survey found = surveyed(kThree);
  const Mix mix = keep_all(found);
  EXPECT_EQ(mix.packs, std::vector<PlanChoice>(18, PlanChoice::kKeep));
  EXPECT_EQ(mix.recompute, Bits(3, false));
  EXPECT_EQ(offload_choices(found, mix), Bits(19, false));
  expect_agreement(kThree, mix);
}

TEST(MixTest, EverySelectionOfSegments) {
  for (int chosen = 0; chosen < 8; ++chosen) {
    SCOPED_TRACE(chosen);
    const Bits segments = {(chosen & 1) != 0, (chosen & 2) != 0, (chosen & 4) != 0};
    expect_agreement(kThree, recomputing(surveyed(kThree), segments));
  }
}

TEST(MixTest, WhatCheckpointsTakeTheOffloaderDoesNotSeeButTheirInputs) {
  const Survey found = surveyed(kThree);
  Mix mix = recomputing(found, {true, true, true});
  mix.input_moves[1] = {true, false};
  const Bits expected = {false, false, false,  // the first layer
                         false,                // the first segment's input
                         true,  false,         // the second segment's inputs
                         false, false, false,  // the layer between
                         false,                // the third segment's input
                         false};               // the end of the list
  EXPECT_EQ(offload_choices(found, mix), expected);
  expect_agreement(kThree, mix);
}

TEST(MixTest, WhatASegmentPassesOnHasItsPlaceAmongThePacks) {
  const Survey found = surveyed(kThree);
  Mix mix = recomputing(found, {true, true, false});
  mix.packs[2] = PlanChoice::kOffload;   // h of the plain layer
  mix.packs[5] = PlanChoice::kOffload;   // h of the first segment
  mix.packs[8] = PlanChoice::kKeep;      // h of the second segment's first layer
  mix.packs[11] = PlanChoice::kOffload;  // h of the second segment's second layer
  mix.packs[17] = PlanChoice::kOffload;  // h of the third segment, which is not recomputed
  settle(mix, found, 0);
  const Bits expected = {false, false, true,           // the first layer
                         false, true,                  // the input and the h of a segment
                         false, false, true,           // two inputs and the second h
                         false, false, false,          // the layer between
                         false, false, true,  false};  // the third segment; the end of the list
  EXPECT_EQ(offload_choices(found, mix), expected);
  const auto plan = segment_plan(found, mix);
  EXPECT_FALSE(plan->unlisted);
  ASSERT_EQ(plan->segments.size(), 3u);
  EXPECT_TRUE(plan->segments[0].checkpoint);
  EXPECT_FALSE(plan->segments[2].checkpoint);
  using Choices = std::vector<SavedChoice>;
  constexpr auto kAgain = SavedChoice::kRecompute;
  EXPECT_EQ(plan->segments[0].choices, (Choices{kAgain, kAgain, SavedChoice::kOffload}));
  EXPECT_EQ(plan->segments[1].choices,
            (Choices{kAgain, kAgain, SavedChoice::kKeep, kAgain, kAgain, SavedChoice::kOffload}));
  EXPECT_TRUE(plan->segments[2].choices.empty());
  expect_agreement(kThree, mix);
}

TEST(MixTest, EntriesCountPacksByFrame) {
  const Survey found = surveyed({{PartKind::kPlain, 1}, {}});
  Mix mix = recomputing(found, {true});
  mix.input_moves[0] = {true};
  const std::vector<PlanEntry> entries = plan_entries(found, mix);
  ASSERT_EQ(entries.size(), 7u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].pack, i);
    EXPECT_EQ(entries[i].segment, std::nullopt);
  }
  EXPECT_EQ(entries[3].op, "checkpoint");
  EXPECT_EQ(entries[3].decision, PlanChoice::kOffload);
  EXPECT_EQ(entries[4].group, entries[3].group);
  for (std::size_t i = 4; i < 7; ++i) {
    EXPECT_EQ(entries[i].pack, i - 4);
    EXPECT_EQ(entries[i].segment, 0u);
    EXPECT_EQ(entries[i].decision, PlanChoice::kRecompute);
  }
}

TEST(MixTest, SegmentsThatSaveNothingKeepTheirInputsInOrder) {
  const std::vector<Part> parts = {
      {PartKind::kSegment, 0}, {PartKind::kSegment, 0}, {}, {PartKind::kSegment, 0}, {},
      {PartKind::kPlain, 1},   {PartKind::kSegment, 0}};
  const Survey found = surveyed(parts);
  for (int chosen = 0; chosen < 64; ++chosen) {
    SCOPED_TRACE(chosen);
    Bits segments;
    for (int s = 0; s < 6; ++s) segments.push_back((chosen >> s & 1) != 0);
    Mix mix = recomputing(found, segments);
    for (std::size_t s = 0; s < 6; s += 2) mix.input_moves[s] = {true};
    settle(mix, found, 0);
    expect_agreement(parts, mix);
  }
}

TEST(MixTest, ASegmentThatSavesNothingIsNeverRecomputed) {
  const Program program = made({{PartKind::kSegment, 0}, {}});
  const Survey found = survey(program, test::tiny_hardware());
  const sim::Simulation run =
      test::run_mix(program, test::tiny_hardware(), found, recomputing(found, {true, true}), {})
          .simulation;
  EXPECT_EQ(run.checkpoints.segments, 2);
  EXPECT_EQ(run.checkpoints.recomputes, 1);
}

TEST(MixTest, InsideASegmentNothingIsACheckpoint) {
  const std::vector<Part> parts = {{PartKind::kNested, 2}, {PartKind::kNested, 1}};
  const Survey found = surveyed(parts);
  for (const Bits& segments : {Bits{true, true}, Bits{false, true}, Bits{false, false}}) {
    expect_agreement(parts, recomputing(found, segments));
  }
}

TEST(MixTest, WhatIsExcludedIsRecomputedUnseen) {
  const Program program = made({{PartKind::kExcluded}, {}});
  const Survey found = survey(program, test::tiny_hardware());
  Mix mix = recomputing(found, {true, false});
  mix.packs[2] = PlanChoice::kOffload;
  const auto [run, decisions] =
      test::run_mix(program, test::tiny_hardware(), found, mix, everything());
  EXPECT_EQ(run.gradients, sim::simulate(program, test::tiny_hardware(), {}).gradients);
  EXPECT_EQ(run.statistics.packs, 3);
  EXPECT_EQ(run.statistics.offloaded_count, 1);
  EXPECT_EQ(run.checkpoints.recomputes, 1);
}

TEST(MixTest, AReentrantSegmentIsRecomputedAsAWhole) {
  const Program program = made({{PartKind::kReentrant, 2}, {}, {PartKind::kReentrant}});
  const Survey found = survey(program, test::tiny_hardware());
  Mix mix = recomputing(found, {true, true, true});
  mix.packs[8] = PlanChoice::kOffload;  // h of the segment between
  mix.input_moves[2] = {true};
  settle(mix, found, 0);
  const auto [run, decisions] =
      test::run_mix(program, test::tiny_hardware(), found, mix, everything());
  EXPECT_TRUE(run.hazards.empty());
  EXPECT_FALSE(run.leftovers.any());
  EXPECT_EQ(run.gradients, sim::simulate(program, test::tiny_hardware(), {}).gradients);
  EXPECT_EQ(run.checkpoints.recomputes, 3);
  EXPECT_EQ(run.statistics.offloaded_count, 2);  // saves of a recompute are not offloaded
}

TEST(SettleTest, StoragesMoveWhole) {
  const Survey found = surveyed({{PartKind::kPlain, 1}, {}, {}});
  Mix mix = recomputing(found, {true, false});
  // The second segment's input is also saved by its first layer, recomputed or not.
  mix.packs[6] = PlanChoice::kOffload;
  settle(mix, found, 0);
  EXPECT_EQ(mix.input_moves[1], Bits{true});
  EXPECT_EQ(mix.input_moves[0], Bits{false});
  EXPECT_EQ(mix.packs[3], PlanChoice::kRecompute);  // the first segment's input
  mix = recomputing(found, {true, true});
  mix.input_moves[1] = {true};
  mix.packs[6] = PlanChoice::kKeep;
  settle(mix, found, 0);
  EXPECT_EQ(mix.packs[6], PlanChoice::kOffload);
  expect_agreement({{PartKind::kPlain, 1}, {}, {}}, mix);
}

TEST(SettleTest, WhatTheOffloaderLeavesAloneIsKept) {
  const Survey found = surveyed({{PartKind::kPlain, 1}, {}});
  Mix mix = keep_all(found);
  std::fill(mix.packs.begin(), mix.packs.end(), PlanChoice::kOffload);
  Mix small = mix;
  settle(mix, found, kTensor);
  constexpr auto kMoves = PlanChoice::kOffload;
  constexpr auto kStays = PlanChoice::kKeep;
  EXPECT_EQ(mix.packs, (std::vector<PlanChoice>{kMoves, kStays, kMoves, kMoves, kStays, kMoves}));
  settle(small, found, kTensor + 1);
  EXPECT_EQ(small.packs, std::vector<PlanChoice>(6, kStays));
}

TEST(SettleTest, OnlyWhatIsThereCounts) {
  const Survey found = surveyed({{}});
  Mix mix = keep_all(found);
  mix.input_moves[0] = {true};  // the segment is not recomputed, so its input is not saved
  settle(mix, found, 0);
  EXPECT_EQ(mix.input_moves[0], Bits{false});
  EXPECT_EQ(mix.packs, std::vector<PlanChoice>(3, PlanChoice::kKeep));
}

TEST(SettleTest, TwiceIsOnce) {
  const Survey found = surveyed(kThree);
  Mix once = recomputing(found, {true, false, true});
  once.packs[8] = PlanChoice::kOffload;
  once.input_moves[2] = {true};
  settle(once, found, 0);
  Mix twice = once;
  settle(twice, found, 0);
  EXPECT_EQ(twice.packs, once.packs);
  EXPECT_EQ(twice.input_moves, once.input_moves);
}

TEST(MixTest, AStepThatSavesAnotherNumberThanItsPlanEnds) {
  const Program program = made({{PartKind::kPlain, 1}, {}});
  const Survey found = survey(program, test::tiny_hardware());
  Plan plan;
  const Mix mix = recomputing(found, {true});
  plan.segments = plan_segments(mix, {"part.1"});
  plan.entries = plan_entries(found, mix);
  plan.entries.pop_back();
  sim::SimulationOptions options;
  options.segments = planned_segments(plan);
  const sim::Simulation run = sim::simulate(program, test::tiny_hardware(), options);
  ASSERT_EQ(run.errors.size(), 1u);
  EXPECT_EQ(run.errors[0].message,
            "ferry::checkpoint: the segment saved 3 tensors, and the plan in force has 2 for it");
  EXPECT_TRUE(run.hazards.empty());
  EXPECT_FALSE(run.leftovers.any());
}

}  // namespace
}  // namespace ferry::plan
