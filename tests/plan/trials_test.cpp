// The store of trials: floors rule out candidates without changing the result, and each candidate
// is simulated only once.
#include "plan/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "formats/program_file.h"
#include "plan/planner.h"
#include "scenarios/programs.h"
#include "tests/plan/support/planned.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

struct Subject {
  const Program whole;
  const Hardware hardware;
  Problem problem{whole, with_segments(whole), hardware, {}, {}};
  Floors floors;

  Subject(Program program, const Hardware& on)
      : whole(std::move(program)),
        hardware(on),
        floors(problem.program, hardware, trace_keep(problem.program, hardware)) {
    problem.survey = survey(problem.program, hardware);
  }
  Trials trials() const { return Trials(problem, floors, nullptr, nullptr); }
  std::vector<Candidate> candidates() const {
    const Survey& found = problem.survey;
    return found.segments.empty() ? offload_candidates(found) : mixed_candidates(found);
  }
};

std::size_t simulated(const Trials& trials) {
  return static_cast<std::size_t>(std::count_if(trials.all().begin(), trials.all().end(),
                                                [](const Tried& each) { return each.done; }));
}

// Compares the picks with and without floors, for several budgets and for one that nothing fits.
void expect_the_same_pick(const Subject& subject, std::size_t& all, std::size_t& tried) {
  const std::vector<Candidate> candidates = subject.candidates();
  Trials whole = subject.trials();
  const std::vector<Cost> costs = whole.of("all", candidates);
  const std::int64_t keep = costs.front().device_reserved_bytes;
  for (const int percent : {0, 40, 55, 70, 85, 100}) {
    const Limits limits{keep / 100 * percent, subject.hardware.host_memory_bytes, keep};
    Trials some = subject.trials();
    const std::size_t picked = some.fastest("some", candidates, limits);
    const Cost& found = costs[picked];
    const Cost& best = costs[pick_fastest(costs, limits)];
    EXPECT_EQ(found.step_ns, best.step_ns) << percent;
    EXPECT_EQ(found.device_reserved_bytes, best.device_reserved_bytes) << percent;
    all += simulated(whole);
    tried += simulated(some);
  }
}

TEST(TrialsTest, WhatFloorsRuleOutIsNotWhatIsPicked) {
  std::size_t all = 0, tried = 0;
  for (int number = 0; number < 40; ++number) {
    choices::Draws draws(24, static_cast<std::uint64_t>(number));
    const test::Subject small = test::small_subject(draws);
    const Subject subject(small.program, small.hardware);
    expect_the_same_pick(subject, all, tried);
  }
  EXPECT_LT(tried, all);
}

TEST(TrialsTest, OfAShippedProgramsCandidatesFewAreSimulated) {
  std::size_t all = 0, tried = 0;
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  expect_the_same_pick(subject, all, tried);
  EXPECT_LT(tried, all / 2);
}

TEST(TrialsTest, ACandidateIsSimulatedOnce) {
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  std::atomic<int> runs = 0;
  Trials counted(subject.problem, subject.floors, nullptr, [&runs] {
    ++runs;
    return false;
  });
  const std::vector<Candidate> all = recompute_candidates(subject.problem.survey);
  const std::vector<Cost> first = counted.of("first", all);
  EXPECT_EQ(runs, static_cast<int>(all.size()));
  counted.of("again", all);
  EXPECT_EQ(runs, static_cast<int>(all.size()));
  EXPECT_EQ(counted.all().size(), all.size());
}

// A candidate that would reserve more than the budget may still run there, if the allocator frees
// its cache. This is known only after running it there; then it holds for each larger budget too.
TEST(TrialsTest, WhatWouldReserveMoreIsRunAtTheBudget) {
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  const Candidate all = recompute_all(subject.problem.survey);
  Trials trials = subject.trials();
  const Cost cost = trials.of("all", {all}).front();
  ASSERT_LT(cost.device_peak_bytes, cost.device_reserved_bytes);
  const auto limits = [&](std::int64_t budget) { return Limits{budget, kUnlimited, kUnlimited}; };
  const auto runs_at = [&](std::int64_t budget) {
    return subject.problem.run(all, {.device_bytes = budget});
  };
  // Find the smallest capacity at which it runs, to a MiB.
  std::int64_t fails = cost.device_peak_bytes - 1, runs = cost.device_reserved_bytes;
  while (runs - fails > std::int64_t{1} << 20) {
    const std::int64_t middle = fails + (runs - fails) / 2;
    (runs_at(middle).errors.empty() ? runs : fails) = middle;
  }
  ASSERT_LT(runs, cost.device_reserved_bytes);
  EXPECT_FALSE(trials.fitting(limits(runs))) << "not seen yet";
  EXPECT_GT(trials.within("below", {all}, limits(fails)).front().cost.device_reserved_bytes, fails);
  const Cost within = trials.within("at", {all}, limits(runs)).front().cost;
  EXPECT_EQ(within.device_reserved_bytes, runs);
  EXPECT_EQ(within.step_ns, runs_at(runs).step_ns);
  EXPECT_GT(within.step_ns, cost.step_ns) << "the driver's calls take time";
  EXPECT_EQ(trials.fitting(limits(runs + 1)).value().step_ns, within.step_ns);
  EXPECT_FALSE(trials.fitting(limits(runs - 1)));
  EXPECT_EQ(trials.fitting(limits(kUnlimited)).value().step_ns, cost.step_ns);
}

// If a fitting candidate is known, others run at the budget's capacity only, and have the cost of
// that run. A candidate that fails there has no cost, and may still run with more memory.
TEST(TrialsTest, AtOneBudgetAloneACandidateIsRunOnce) {
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  const Candidate keeps{std::nullopt, keep_all(subject.problem.survey)};
  const Candidate all = recompute_all(subject.problem.survey);
  std::atomic<int> runs = 0;
  Trials trials(subject.problem, subject.floors, nullptr, [&runs] {
    ++runs;
    return false;
  });
  const auto limits = [&](std::int64_t budget) { return Limits{budget, kUnlimited, kUnlimited}; };
  const Cost keep = trials.of("keep", {keeps}).front();
  const Cost whole = subject.problem.cost(all);
  const Limits large = limits(keep.device_reserved_bytes), tight = limits(whole.device_peak_bytes);
  runs = 0;
  const Trials::Found found = trials.at_budget("large", {all}, large).front();
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(found.tried->done);
  EXPECT_EQ(found.tried->capacity, large.budget_bytes);
  EXPECT_EQ(found.cost.step_ns, whole.step_ns) << "it gave nothing back";
  EXPECT_EQ(found.cost.device_reserved_bytes, whole.device_reserved_bytes);
  // It runs with unlimited memory only when this is requested.
  EXPECT_EQ(trials.of("whole", {all}).front().step_ns, whole.step_ns);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(found.tried->capacity, 0);
  trials.at_budget("again", {all}, large);
  EXPECT_EQ(runs, 2) << "it is known to fit";
  // No fitting candidate is known, so it runs with unlimited memory to find what it needs.
  Trials first = subject.trials();
  const Trials::Found alone = first.at_budget("tight", {all}, tight).front();
  EXPECT_TRUE(alone.tried->done);
  EXPECT_EQ(alone.cost.device_reserved_bytes, whole.device_reserved_bytes);
}

TEST(TrialsTest, WhatDoesNotRunAtABudgetMayRunAtALargerOne) {
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  const Candidate keeps{std::nullopt, keep_all(subject.problem.survey)};
  const Candidate all = recompute_all(subject.problem.survey);
  Trials trials = subject.trials();
  const Cost least = trials.of("all", {all}).front();
  const Cost keep = subject.problem.cost(keeps);
  const auto limits = [&](std::int64_t budget) { return Limits{budget, kUnlimited, kUnlimited}; };
  const Limits tight = limits(least.device_reserved_bytes);
  const Trials::Found failed = trials.at_budget("tight", {keeps}, tight).front();
  EXPECT_TRUE(failed.cost.fails);
  EXPECT_FALSE(failed.tried->done);
  EXPECT_EQ(trials.best(tight)->cost.step_ns, least.step_ns);
  const Limits large = limits(keep.device_reserved_bytes);
  const Trials::Found runs = trials.at_budget("large", {keeps}, large).front();
  EXPECT_EQ(runs.tried, failed.tried);
  EXPECT_FALSE(runs.cost.fails);
  EXPECT_EQ(trials.fitting(large).value().step_ns, keep.step_ns);
  EXPECT_EQ(trials.fitting(tight).value().step_ns, least.step_ns);
}

// Candidates that were stopped have no cost; those that ended before the stop do.
TEST(TrialsTest, WhatWasDoneBeforeAStopIsKnown) {
  const Subject subject(load_program(find_program("unet")), find_hardware("h100"));
  std::atomic<int> asked = 0;
  Trials trials(subject.problem, subject.floors, nullptr, [&asked] { return ++asked > 3; });
  const std::vector<Candidate> all = recompute_candidates(subject.problem.survey);
  ASSERT_GT(all.size(), 3u);
  EXPECT_THROW(trials.of("all", all), Stopped);
  EXPECT_EQ(simulated(trials), 3u);
  const Tried* best = trials.best({kUnlimited, kUnlimited, kUnlimited});
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->done);
  EXPECT_GT(best->cost.step_ns, 0);
}

TEST(TrialsTest, OtherSpansAreAnotherCandidate) {
  const Subject subject(test::chain({.layers = 5, .weight_elements = 64}), test::tiny_hardware());
  std::vector<Candidate> candidates;
  const std::vector<std::vector<PlanSpan>> all = {
      {{1, 2}}, {{1, 3}}, {{.first = 1, .last = 3, .keep = {1}}}, {{1, 2}}};
  for (const std::vector<PlanSpan>& spans : all) {
    Survey found = survey(subject.whole, subject.hardware, spans);
    Candidate candidate{std::nullopt, keep_all(found)};
    candidate.spanned = std::make_shared<const Spanned>(Spanned{std::move(found), spans});
    candidates.push_back(std::move(candidate));
  }
  Trials trials = subject.trials();
  const std::vector<Cost> costs = trials.of("spans", candidates);
  EXPECT_EQ(trials.all().size(), 3u) << "the last is the first";
  EXPECT_EQ(costs[0].step_ns, costs[3].step_ns);
  EXPECT_GT(costs[1].step_ns, costs[0].step_ns);
  EXPECT_LT(costs[2].step_ns, costs[1].step_ns) << "one runs again";
}

}  // namespace
}  // namespace ferry::plan
