// At each budget, `best` is no slower than `mixed`, and `mixed` is no slower than any simpler
// policy that fits. If `best` does not fit, no policy does. (offload-all is not compared: it is
// another scheduler and has no plan.)
//
// FERRY_PLANS=60 tries 60 programs instead of a few.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/program_file.h"
#include "plan/planner.h"
#include "scenarios/programs.h"
#include "tests/plan/support/asked.h"
#include "tests/plan/support/planned.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

std::vector<Policy> policies_for(const Program& program, const Hardware& card) {
  std::vector<Policy> found;
  const bool segments = !survey(with_segments(program), card).segments.empty();
  for (const PolicyEntry& each : kPolicies) {
    const bool runs = (segments || !each.for_segments) && each.asked != Asked::kByName;
    if (runs && each.policy != Policy::kOffloadAll) found.push_back(each.policy);
  }
  return found;
}

const PolicyRow* row_of(const PlanResult& result, Policy policy) {
  for (const PolicyRow& row : result.rows) {
    if (row.policy == name(policy)) return &row;
  }
  return nullptr;
}

bool is_answer(const PolicyRow* row) { return row && row->is_answer(); }

void expect_no_slower(const PolicyRow* one, const PolicyRow& other) {
  if (!other.is_answer()) return;
  ASSERT_TRUE(is_answer(one)) << other.policy << " fits";
  EXPECT_LE(one->simulation.step_ns, other.simulation.step_ns) << other.policy;
}

// Returns the number of compared rows.
int expect_never_worse(const Program& program, const Hardware& card, std::int64_t budget_bytes) {
  PlanRequest request;
  request.policies = policies_for(program, card);
  request.budget_bytes = budget_bytes;
  request.check = false;
  const PlanResult result = plan(program, card, request);
  const PolicyRow* best = row_of(result, Policy::kBest);
  const PolicyRow* mixed = row_of(result, Policy::kMixed);
  int compared = 0;
  for (const PolicyRow& row : result.rows) {
    compared += row.is_answer();
    expect_no_slower(best, row);
    if (mixed && row.policy != best->policy) expect_no_slower(mixed, row);
    // If none fits, each row is the plan of its policy that needs the least memory.
    if (!best->fits && !row.useless) {
      EXPECT_LE(best->least_bytes, row.least_bytes) << row.policy;
    }
  }
  return compared;
}

std::int64_t reserved_by_keep(const Program& program, const Hardware& card) {
  sim::SimulationOptions options;
  options.check = false;
  return sim::simulate(program, card, options).device_reserved_bytes;
}

using Case = std::pair<std::string, std::vector<int>>;

class NeverWorse : public ::testing::TestWithParam<Case> {};

TEST_P(NeverWorse, OnAShippedProgram) {
  const auto& [name, percents] = GetParam();
  const Program program = load_program(find_program(name));
  for (const std::string card_name : {"h100", "rtx4090"}) {
    if (name == "llama3-8b" && card_name != "h100") continue;  // it takes long
    const Hardware card = find_hardware(card_name);
    const std::int64_t keep = reserved_by_keep(program, card);
    for (const int percent : percents) {
      SCOPED_TRACE(card_name + " " + std::to_string(percent));
      expect_never_worse(program, card, keep / 100 * percent);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, NeverWorse,
                         ::testing::Values(Case{"unet", {30, 90}}, Case{"gpt2", {65}},
                                           Case{"llama3-8b", {60}}),
                         [](const auto& each) {
                           std::string name = each.param.first;
                           std::erase(name, '-');
                           return name;
                         });

TEST(NeverWorseTest, OnSmallPrograms) {
  int compared = 0;
  const int programs = test::asked_programs(12);
  for (int number = 0; number < programs; ++number) {
    choices::Draws draws(26, static_cast<std::uint64_t>(number));
    const test::Subject subject = test::small_subject(draws);
    const std::int64_t keep = reserved_by_keep(subject.program, subject.hardware);
    for (const int percent : {50, 75, 100}) {
      SCOPED_TRACE(std::to_string(number) + " at " + std::to_string(percent));
      compared += expect_never_worse(subject.program, subject.hardware, keep / 100 * percent);
    }
  }
  EXPECT_GT(compared, programs);
}

// The programs have views, in-place writes, streams, nested graphs, derivatives and micro-batches.
TEST(NeverWorseTest, OnRandomPrograms) {
  Hardware card = test::tiny_hardware();
  card.memory_bytes_per_us = 10'000;
  int compared = 0;
  const int programs = test::asked_programs(60);
  for (int number = 0; number < programs; ++number) {
    choices::Draws draws(27, static_cast<std::uint64_t>(number));
    const Program program = verify::make_program(verify::draw_recipe(draws, verify::Sizes::kSmall));
    SCOPED_TRACE(number);
    compared += expect_never_worse(program, card, reserved_by_keep(program, card));
  }
  EXPECT_GT(compared, programs);
}

}  // namespace
}  // namespace ferry::plan
