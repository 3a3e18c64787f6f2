#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/microbatches.h"
#include "formats/outline.h"
#include "formats/plan_file.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

// Twelve activations of 256 MiB. A copy of one takes 268 ms, its operator 100 ms.
constexpr std::int64_t kActivation = std::int64_t{256} << 20;
constexpr std::int64_t kWeight = std::int64_t{2} << 20;
Program chain() {
  return test::chain({.layers = 12,
                      .elements = kActivation / 2,
                      .weight_elements = kWeight / 2,
                      .op_ns = 100'000'000});
}

PlanRequest request(const std::vector<std::string>& policies,
                    std::int64_t budget_bytes = std::int64_t{8} << 30) {
  PlanRequest made;
  for (const std::string& policy : policies) made.policies.push_back(find_policy(policy).value());
  made.budget_bytes = budget_bytes;
  return made;
}

Hardware card() {
  Hardware hardware = test::tiny_hardware();
  hardware.host_memory_bytes = std::int64_t{8} << 30;
  return hardware;
}
PlanResult plan_chain(const PlanRequest& request) { return plan(chain(), card(), request); }

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(PlannerTest, EveryPolicyIsARowAsAskedFor) {
  const PlanResult result =
      plan_chain(request({"offload-some", "keep", "prefetch", "offload", "keep", "offload-all"}));
  ASSERT_EQ(result.rows.size(), 6u);
  const std::vector<std::string> names = {"offload-some", "keep", "prefetch",
                                          "offload",      "keep", "offload-all"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PolicyRow& row = result.rows[i];
    EXPECT_EQ(row.policy, names[i]);
    EXPECT_EQ(row.candidate.options.has_value(),
              names[i] == "offload-some" ? row.simulation.d2h_bytes > 0
                                         : names[i] == "prefetch" || names[i] == "offload");
    EXPECT_TRUE(row.fits);
    EXPECT_TRUE(row.simulation.hazards.empty());
    EXPECT_FALSE(row.simulation.leftovers.any());
    EXPECT_EQ(row.simulation.gradients, result.rows[1].simulation.gradients);
  }
  EXPECT_EQ(result.rows[1].simulation.step_ns, result.keep_ns);
  EXPECT_EQ(result.survey.packs.size(), 13u);
}

TEST(PlannerTest, WithRoomForAllNothingNeedsToMove) {
  const PlanResult result = plan_chain(request({"keep", "offload-some"}));
  EXPECT_EQ(result.rows[1].simulation.step_ns, result.keep_ns);
}

TEST(PlannerTest, ATightBudgetIsMetByMoving) {
  const PlanResult result = plan_chain(request({"keep", "offload-some"}));
  const std::int64_t all = result.rows[0].simulation.device_reserved_bytes;
  const PolicyRow tight = plan_chain(request({"offload-some"}, all - 2 * kActivation)).rows[0];
  EXPECT_TRUE(tight.fits);
  EXPECT_LE(tight.simulation.device_reserved_bytes, all - 2 * kActivation);
  EXPECT_GT(tight.simulation.statistics.offloaded_bytes, 0);
}

TEST(PlannerTest, ABudgetThatNothingMeetsDoesNotFitAndIsAnsweredWithTheLeast) {
  const PolicyRow least = plan_chain(request({"offload-some"}, 1)).rows[0];
  EXPECT_FALSE(least.fits);
  const PolicyRow keep = plan_chain(request({"keep"}, 1)).rows[0];
  EXPECT_FALSE(keep.fits);
  EXPECT_LT(least.simulation.device_reserved_bytes, keep.simulation.device_reserved_bytes);
  const std::int64_t reserved = least.simulation.device_reserved_bytes;
  EXPECT_TRUE(plan_chain(request({"offload-some"}, reserved)).rows[0].fits);
  EXPECT_FALSE(plan_chain(request({"offload-some"}, reserved - 1)).rows[0].fits);
}

TEST(PlannerTest, ALowerBudgetNeverReservesMoreOfAShippedProgram) {
  const Program gpt2 = load_program(find_program("gpt2"));
  const Hardware hardware = find_hardware("rtx4090");
  std::int64_t reserved = 0;
  for (const std::int64_t gib : {4, 6, 8, 10}) {
    PlanRequest unchecked = request({"offload-some"}, gib << 30);
    unchecked.check = false;
    const PolicyRow row = plan(gpt2, hardware, unchecked).rows[0];
    EXPECT_GE(row.simulation.device_reserved_bytes, reserved) << gib;
    EXPECT_EQ(row.fits, row.simulation.device_reserved_bytes <= gib << 30) << gib;
    reserved = row.simulation.device_reserved_bytes;
  }
}

TEST(PlannerTest, WhatTheHostCannotPinDoesNotFit) {
  Hardware hardware = card();
  hardware.host_memory_bytes = 4096;
  EXPECT_FALSE(plan(chain(), hardware, request({"offload-all"})).rows[0].fits);
  EXPECT_TRUE(plan(chain(), hardware, request({"keep"})).rows[0].fits);
}

// Nothing fits, and the plan with the least device memory pins more memory than the host has. The
// row then has a plan that fits the host, and its refusal is about the device.
TEST(PlannerTest, ARefusalNamesTheHostsMemoryOnlyWhereEachPlanPinsTooMuch) {
  const Program unet = load_program(find_program("unet"));
  Hardware card = find_hardware("h100");
  const PolicyRow roomy = plan(unet, card, request({"best"}, 1)).rows[0];
  ASSERT_GT(roomy.simulation.host_peak_bytes, std::int64_t{64} << 20);
  card.host_memory_bytes = std::int64_t{16} << 20;
  for (const char* policy : {"offload-some", "best"}) {
    const PolicyRow row = plan(unet, card, request({policy}, 1)).rows[0];
    EXPECT_FALSE(row.fits);
    EXPECT_LE(row.simulation.host_peak_bytes, card.host_memory_bytes) << row.policy;
    EXPECT_EQ(row.refusal.find("pins"), std::string::npos) << row.refusal;
    EXPECT_GE(row.least_bytes, roomy.least_bytes) << row.policy;
  }
}

TEST(PlannerTest, AnOptimizersStateIsInEveryRow) {
  PlanRequest adamw = request({"keep", "offload-all"});
  const PlanResult without = plan_chain(adamw);
  adamw.training.optimizer = sim::Optimizer::kAdamW;
  const PlanResult with = plan_chain(adamw);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(with.rows[i].simulation.device_peak_bytes,
              without.rows[i].simulation.device_peak_bytes + 12 * 2 * kWeight);
  }
}

// The row is TRL's own scheduler: a storage that is saved again during its copy is kept on the
// device, and the first node of backward flushes the window. (Once the row was Ferry's core with
// TRL's settings: 208 ms for GPT-2, faster than TRL.)
TEST(PlannerTest, OffloadAllIsTrlsScheduler) {
  const Program gpt2 = load_program(find_program("gpt2"));
  const Hardware hardware = find_hardware("h100");
  const PlanResult result = plan(gpt2, hardware, request({"offload-all", "offload"}));
  const PolicyRow& trl = result.rows[0];
  EXPECT_TRUE(trl.is_safe());
  EXPECT_FALSE(trl.has_plan());
  EXPECT_TRUE(result.rows[1].has_plan());
  EXPECT_EQ(trl.simulation.statistics.packs, 0);  // the core saw none
  EXPECT_GT(trl.simulation.d2h_bytes, std::int64_t{5} << 30);
  sim::SimulationOptions ours;
  ours.offload = trl_options();
  EXPECT_GT(trl.simulation.step_ns, sim::simulate(gpt2, hardware, ours).step_ns);
}

// A chain has no views with gaps. For such a view TRL returns a dense copy, which the simulator
// treats as other values.
TEST(PlannerTest, OffloadAllGivesTheGradientsOfOffload) {
  const PlanResult result = plan_chain(request({"offload-all", "offload"}));
  EXPECT_GT(result.rows[0].simulation.d2h_bytes, 8 * kActivation);
  EXPECT_EQ(result.rows[0].simulation.gradients, result.rows[1].simulation.gradients);
}

TEST(PlannerTest, ProgressCountsToTheEndOfEverySearch) {
  PlanRequest watched = request({"prefetch", "offload-some"});
  std::vector<std::string> ended;
  watched.progress = [&](std::string_view what, std::size_t done, std::size_t all) {
    EXPECT_LE(done, all);
    if (done == all && (ended.empty() || ended.back() != what)) ended.emplace_back(what);
  };
  plan_chain(watched);
  EXPECT_EQ(ended, (std::vector<std::string>{"prefetch", "offload-some"}));
}

TEST(PlannerTest, AProgramThatSavesNothingIsPlanned) {
  Builder b;
  const Slot w = b.global(GlobalKind::kParameter, b.type({1024}));
  b.op(0, "f", {w}, b.type({1024}));
  PlanRequest all = request({"keep", "offload-all", "prefetch", "offload-some"});
  const PlanResult result = plan(b.program, card(), all);
  for (const PolicyRow& row : result.rows) {
    EXPECT_EQ(row.simulation.digest, result.rows[0].simulation.digest);
    EXPECT_FALSE(to_options(to_plan(b.program, card(), result, row)).has_value());
  }
}

// Once the slowdown overflowed for a step of a year.

TEST(PlannerTest, SlowdownIsRoundedUp) {
  EXPECT_EQ(slowdown_permille(1000, 1000), 1000);
  EXPECT_EQ(slowdown_permille(1'000'001, 1'000'000), 1001);
  EXPECT_EQ(slowdown_permille(1853, 1000), 1853);
  EXPECT_EQ(slowdown_permille(0, 0), 1000);
  constexpr sim::Time kYear = 31'557'600'000'000'000;
  EXPECT_EQ(slowdown_permille(3 * kYear, 2 * kYear), 1500);
  EXPECT_EQ(slowdown_permille(std::numeric_limits<sim::Time>::max(), 1),
            std::numeric_limits<std::int64_t>::max());
}

// Writes the plan of every row, reads it back, and expects it to run as the row says.
void expect_round_trips(const Program& program, const Hardware& hardware,
                        const PlanRequest& request) {
  const PlanResult result = plan(program, hardware, request);
  for (const PolicyRow& row : result.rows) {
    if (!row.has_plan()) continue;
    const Plan written = to_plan(program, hardware, result, row);
    const Plan read = parse_plan(to_text(written), "plan.json");
    EXPECT_EQ(read, written) << row.policy;
    EXPECT_EQ(read.program_digest, digest(program));
    EXPECT_GE(read.entries.size(), result.survey.packs.size());  // inputs are saved too
    sim::SimulationOptions options;
    options.offload = to_options(read);
    options.segments = planned_segments(read);
    options.training = request.training;
    options.device_bytes = row.device_bytes;
    const sim::Simulation again = sim::simulate(with_segments(program, read), hardware, options);
    EXPECT_EQ(again.digest, row.simulation.digest) << row.policy;
    EXPECT_EQ(again.step_ns, read.predicted.step_ns) << row.policy;
    EXPECT_EQ(again.device_peak_bytes, read.predicted.peak_bytes) << row.policy;
    EXPECT_EQ(again.device_reserved_bytes, read.predicted.reserved_bytes) << row.policy;
    EXPECT_EQ(again.host_peak_bytes, read.predicted.host_bytes) << row.policy;
    EXPECT_EQ(again.gradients, row.simulation.gradients) << row.policy;
  }
}

TEST(PlannerTest, APlanRunsAsItsRow) {
  expect_round_trips(chain(), card(), request({"keep", "offload", "prefetch", "offload-some"}));
  expect_round_trips(chain(), card(), request({"offload-some"}, 1));
}

TEST(PlannerTest, AShippedProgramsPlanRunsAsItsRow) {
  expect_round_trips(load_program(find_program("gpt2")), find_hardware("rtx4090"),
                     request({"offload", "prefetch", "offload-some"}, std::int64_t{7} << 30));
}

// Eight blocks with large inner activations. A copy of one takes 33.5 ms, computing one 20 ms.
Program blocks(int count = 8) {
  return test::segmented(std::vector<test::Part>(static_cast<std::size_t>(count)),
                         {.elements = std::int64_t{1} << 20,
                          .inner_elements = std::int64_t{1} << 24,
                          .weight_elements = std::int64_t{1} << 18,
                          .op_ns = 20'000'000});
}
constexpr std::int64_t kInner = std::int64_t{32} << 20;

// All policies except those by name, which need a forward that calls nothing
// (field_spans_test.cpp).
const std::vector<std::string> kAll = [] {
  std::vector<std::string> names;
  for (const PolicyEntry& each : kPolicies) {
    if (each.asked != Asked::kByName) names.emplace_back(each.name);
  }
  return names;
}();

std::map<std::string, PolicyRow> rows_of(const Program& program, std::int64_t budget_bytes) {
  std::map<std::string, PolicyRow> rows;
  for (PolicyRow& row : plan(program, card(), request(kAll, budget_bytes)).rows) {
    rows.emplace(row.policy, std::move(row));
  }
  return rows;
}

void expect_clean(const PolicyRow& row, const sim::Simulation& keep) {
  SCOPED_TRACE(row.policy);
  for (const check::Hazard& hazard : row.simulation.hazards) ADD_FAILURE() << to_string(hazard);
  for (const sim::ProgramError& error : row.simulation.errors) ADD_FAILURE() << error.message;
  EXPECT_FALSE(row.simulation.leftovers.any());
  EXPECT_EQ(row.simulation.gradients, keep.gradients);
}

TEST(PlannerTest, CheckpointRecomputesEverySegment) {
  const PlanResult result = plan(blocks(), card(), request({"checkpoint"}));
  const PolicyRow& row = result.rows[0];
  EXPECT_EQ(result.segments.size(), 8u);
  EXPECT_EQ(result.segments[7], "part.7");
  EXPECT_EQ(row.simulation.checkpoints.segments, 8);
  EXPECT_EQ(row.simulation.checkpoints.recomputes, 8);
  EXPECT_EQ(row.simulation.statistics.packs, 0);
  // A recompute ends at the last tensor that is needed: `up` is recomputed, `down` is not.
  EXPECT_EQ(row.simulation.compute_ns, result.keep_ns + 8 * 20'000'000);
}

TEST(PlannerTest, AsFewSegmentsAsNeeded) {
  const std::int64_t all =
      plan(blocks(), card(), request({"keep"})).rows[0].simulation.device_reserved_bytes;
  std::int64_t before = 0;
  for (const int spared : {0, 1, 2, 5}) {
    const PolicyRow row =
        plan(blocks(), card(), request({"checkpoint-nth"}, all - spared * kInner)).rows[0];
    EXPECT_TRUE(row.fits) << spared;
    EXPECT_GE(row.simulation.checkpoints.segments, spared);
    EXPECT_LE(row.simulation.checkpoints.segments, spared + 1) << spared;
    EXPECT_GE(row.simulation.checkpoints.segments, before);
    before = row.simulation.checkpoints.segments;
  }
}

// A segment raises when it is recomputed, which ends the backward. Once this row, with a slowdown
// of 0.381, was the answer.
TEST(PlannerTest, ARunThatRaisesIsNoAnswer) {
  Program program = blocks();
  for (Code& code : program.codes) {
    if (code.name != "part.3") continue;
    code.statements.insert(code.statements.begin(), {{When{true, 1}, 0}, {Raise{"boom"}, 0}});
  }
  const std::int64_t all =
      plan(program, card(), request({"keep"})).rows[0].simulation.device_reserved_bytes;
  const PlanResult result =
      plan(program, card(),
           request({"checkpoint", "checkpoint-nth", "mixed", "offload-some"}, all - kInner));
  EXPECT_EQ(result.rows[0].simulation.errors.at(0).message, "boom");
  EXPECT_FALSE(result.rows[0].fits);
  EXPECT_FALSE(result.rows[0].is_answer());
  for (std::size_t i = 1; i < result.rows.size(); ++i) {
    EXPECT_TRUE(result.rows[i].is_answer()) << result.rows[i].policy;
    EXPECT_GE(result.rows[i].simulation.step_ns, result.keep_ns) << result.rows[i].policy;
  }
  EXPECT_NE(best_row(result), &result.rows[0]);
}

// Once `-o` wrote the last row's plan, which offloaded 490 MiB of a ResNet that fits without
// offload.
TEST(PlannerTest, TheBestRowIsTheFastestThatFitsThenTheSmallest) {
  PlanResult result;
  const auto add = [&](sim::Time step_ns, std::int64_t reserved, bool fits) -> PolicyRow& {
    PolicyRow& row = result.rows.emplace_back();
    row.simulation.step_ns = step_ns;
    row.simulation.device_reserved_bytes = reserved;
    row.fits = fits;
    return row;
  };
  EXPECT_EQ(best_row(result), nullptr);
  add(10, 500, false);
  EXPECT_EQ(best_row(result), &result.rows[0]);  // the only row
  add(20, 400, false);
  EXPECT_EQ(best_row(result), &result.rows[1]);  // nothing fits: the least memory
  add(40, 300, true);
  EXPECT_EQ(best_row(result), &result.rows[2]);
  add(30, 290, true);
  add(30, 280, true);
  EXPECT_EQ(best_row(result), &result.rows[4]);
  add(5, 100, true).useless = true;
  add(5, 100, true).candidate.trl = true;
  add(5, 100, true).simulation.errors.push_back({1, "boom"});
  add(5, 100, true).simulation.hazards.emplace_back();
  EXPECT_EQ(best_row(result), &result.rows[4]);
}

TEST(PlannerTest, WhatReservesMoreThanKeepIsUselessUnlessItRunsInLess) {
  const auto is_useless = [](std::int64_t device_bytes, bool fits) {
    Verdict verdict;
    verdict.judged_bytes = 110;
    verdict.fits = fits;
    return row_of("best", {}, {}, device_bytes, verdict, /*keep_bytes=*/100).useless;
  };
  EXPECT_TRUE(is_useless(0, true));
  EXPECT_FALSE(is_useless(90, true));
  EXPECT_TRUE(is_useless(100, true));
  EXPECT_TRUE(is_useless(90, false));
}

TEST(PlannerTest, InputsOfSegmentsMoveWithCheckpointOffload) {
  const auto rows = rows_of(blocks(), std::int64_t{8} << 30);
  const PolicyRow& row = rows.at("checkpoint-offload");
  EXPECT_EQ(row.simulation.checkpoints.segments, 8);
  EXPECT_EQ(row.simulation.statistics.packs, 8);
  EXPECT_GE(row.simulation.statistics.offloaded_count, 1);
  EXPECT_EQ(row.simulation.h2d_bytes, row.simulation.d2h_bytes);
}

TEST(PlannerTest, BestIsNeverWorseThanAnotherRowThatFits) {
  const std::int64_t all =
      plan(blocks(), card(), request({"keep"})).rows[0].simulation.device_reserved_bytes;
  for (const std::int64_t spared : {0, 1, 3, 5, 7, 40}) {
    SCOPED_TRACE(spared);
    const auto rows = rows_of(blocks(), std::max<std::int64_t>(all - spared * kInner, 1));
    const PolicyRow& best = rows.at("best");
    for (const auto& [policy, row] : rows) {
      SCOPED_TRACE(policy);
      expect_clean(row, rows.at("keep").simulation);
      if (row.candidate.trl) continue;  // not Ferry's scheduler
      if (row.fits && !row.useless) {
        EXPECT_TRUE(best.fits);
        EXPECT_LE(best.simulation.step_ns, row.simulation.step_ns);
      } else if (!best.fits) {
        EXPECT_LE(best.simulation.device_reserved_bytes, row.simulation.device_reserved_bytes);
      }
    }
  }
}

TEST(PlannerTest, ALowerBudgetNeverReservesMoreWhateverIsRecomputed) {
  for (const std::string policy : {"checkpoint-nth", "mixed"}) {
    std::int64_t reserved = 0;
    sim::Time step_ns = 0;
    bool fitted = false;
    for (const std::int64_t mib : {1, 60, 100, 150, 200, 250, 300, 400}) {
      PlanRequest unchecked = request({policy}, mib << 20);
      unchecked.check = false;
      const PolicyRow row = plan(blocks(), card(), unchecked).rows[0];
      EXPECT_GE(row.simulation.device_reserved_bytes, reserved) << policy << mib;
      EXPECT_EQ(row.fits, row.simulation.device_reserved_bytes <= mib << 20) << policy << mib;
      EXPECT_TRUE(row.fits || !fitted) << policy << mib;
      if (fitted) {
        EXPECT_LE(row.simulation.step_ns, step_ns) << policy << mib;
      }
      fitted = row.fits;
      reserved = row.simulation.device_reserved_bytes;
      step_ns = row.simulation.step_ns;
    }
    EXPECT_TRUE(fitted) << policy;
  }
}

TEST(PlannerTest, MicrobatchesHaveTheSegmentsOfAll) {
  for (const MicrobatchOrder order :
       {MicrobatchOrder::kFbfb, MicrobatchOrder::kFfbb, MicrobatchOrder::kOneForwardOneBackward}) {
    const Program program = with_microbatches(blocks(3), 3, order);
    const auto rows = rows_of(program, std::int64_t{120} << 20);
    for (const auto& [policy, row] : rows) {
      if (row.has_plan()) expect_clean(row, rows.at("keep").simulation);
    }
    // TRL's context serves one forward: the tensors of the next forward get the same numbers.
    const bool one_at_a_time = order == MicrobatchOrder::kFbfb;
    EXPECT_EQ(rows.at("offload-all").is_safe(), one_at_a_time);
    EXPECT_EQ(rows.at("checkpoint").simulation.checkpoints.recomputes, 9);
    EXPECT_GT(rows.at("checkpoint-offload").simulation.statistics.offloaded_count, 0);
  }
}

TEST(PlannerTest, WithoutSegmentsThereIsNothingToRecompute) {
  EXPECT_FALSE(has_segments(chain()));
  EXPECT_TRUE(has_segments(blocks()));
  for (const PolicyEntry& each : kPolicies) {
    const std::string name(each.name);
    if (each.asked == Asked::kByName) continue;
    EXPECT_EQ(error_of([&] { plan_chain(request({name})); }),
              each.for_segments
                  ? "policy '" + name +
                        "' needs segments: the program has neither checkpoints nor modules that "
                        "repeat"
                  : "");
  }
}

// A layer's node is made in a module, and its tensor is saved after the module has ended. The
// module's boundary would separate the node from its save, so the module cannot be a segment.
TEST(PlannerTest, AModuleThatCannotBeASegmentIsLeftAsItIs) {
  Program program = test::segmented({{test::PartKind::kPlain, 1}, {test::PartKind::kPlain, 1}});
  for (Code& code : program.codes) {
    if (code.name != "forward") continue;
    // embed (node, op), then for each layer: node, op, node, op, free, free.
    auto& all = code.statements;
    const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::uint32_t node = std::get<MakeNode>(all[2].action).id;
    const Slot h = std::get<MakeNode>(all[2].action).out[0];
    const CodeId body = std::get<MakeNode>(all[2].action).body;
    program.codes[body].saved.push_back(1000);
    all.insert(at(8), {Module{"h.1", true}, 0});
    all.insert(at(15), {Module{"h.1", false}, 0});
    all.insert(at(6), {Save{node, {h}}, 0});
    all.insert(at(6), {Module{"h.0", false}, 0});
    all.insert(at(2), {Module{"h.0", true}, 0});
  }
  ASSERT_EQ(segment_modules(program).size(), 2u);
  EXPECT_THROW(outline(program, segment_modules(program)), std::invalid_argument);
  EXPECT_TRUE(has_segments(program));
  const PlanResult result = plan(program, card(), request({"keep", "checkpoint"}));
  EXPECT_EQ(result.segments, std::vector<std::string>{"h.1"});
  EXPECT_EQ(result.rows[1].simulation.checkpoints.recomputes, 1);
}

TEST(PlannerTest, APlanOfSegmentsRunsAsItsRow) {
  expect_round_trips(blocks(), card(), request(kAll));
  expect_round_trips(blocks(), card(), request(kAll, std::int64_t{170} << 20));
  PlanRequest adamw = request({"mixed"}, std::int64_t{150} << 20);
  adamw.training.optimizer = sim::Optimizer::kAdamW;
  expect_round_trips(blocks(), card(), adamw);
}

TEST(PlannerTest, AMixedPlanOfAShippedProgramRunsAsItsRow) {
  expect_round_trips(load_program(find_program("gpt2")), find_hardware("rtx4090"),
                     request({"checkpoint", "checkpoint-offload", "mixed"}, std::int64_t{7} << 30));
}

TEST(PlannerTest, OnlyAPlanThatRecomputesHasSegments) {
  const PlanResult result =
      plan(blocks(2), card(), request({"keep", "offload-some", "checkpoint"}));
  EXPECT_TRUE(to_plan(blocks(2), card(), result, result.rows[0]).segments.empty());
  EXPECT_TRUE(to_plan(blocks(2), card(), result, result.rows[1]).segments.empty());
  const Plan all = to_plan(blocks(2), card(), result, result.rows[2]);
  EXPECT_EQ(all.segments, (std::vector<PlanSegment>{{"part.0", true}, {"part.1", true}}));
  EXPECT_EQ(all.program_digest, digest(blocks(2)));
}

TEST(PlannerTest, APlansEntriesSayWhatMovesByStorage) {
  const PlanResult result = plan_chain(request({"offload", "keep"}));
  const Plan all = to_plan(chain(), card(), result, result.rows[0]);
  EXPECT_EQ(all.hardware, "tiny");
  EXPECT_EQ(all.policy, "offload");
  ASSERT_EQ(all.entries.size(), 13u);
  EXPECT_EQ(all.entries[12].op, "LossBackward");
  EXPECT_EQ(all.entries[12].decision, PlanChoice::kOffload);
  const Plan keep = to_plan(chain(), card(), result, result.rows[1]);
  for (const PlanEntry& entry : keep.entries) EXPECT_EQ(entry.decision, PlanChoice::kKeep);
  EXPECT_FALSE(to_options(keep).has_value());
}

TEST(PlannerTest, AnOptionThatIsNoneIsRefused) {
  const PlanResult result = plan_chain(request({"offload"}));
  const Plan good = to_plan(chain(), card(), result, result.rows[0]);
  const auto refusal = [&](const std::string& name, std::int64_t value) {
    Plan bad = good;
    bad.options = {{name, value}};
    return error_of([&] { to_options(bad); });
  };
  EXPECT_EQ(refusal("window_bytes", 5), "");
  EXPECT_EQ(refusal("speed", 5), "no option of the offloader is called 'speed'");
  EXPECT_EQ(refusal("copy_streams", 3), "option 'copy_streams' cannot be 3");
  EXPECT_EQ(refusal("reload_pool", -1), "option 'reload_pool' cannot be -1");
  EXPECT_EQ(refusal("window_packs", 0), "window_tensors should be at least 1 but is 0");
}

}  // namespace
}  // namespace ferry::plan
