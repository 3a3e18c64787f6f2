// Compares `best`, without offload, with all sets of spans of small forwards, where each operator
// of a span may be kept: `best` is the fastest. The table of spans alone found no plan at 272 of
// 1,950 budgets, because it drops a storage only in a span with all its readers, and assumes the
// most other memory at each point of backward. The best-first search finds these plans.
//
// FERRY_PLANS=1000 tries 1,000 programs instead of a few, and lists those in which `best` is
// slowest relative to the fastest set of spans.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "plan/lower_bound.h"
#include "plan/planner.h"
#include "plan/span_search.h"
#include "tests/plan/support/asked.h"
#include "tests/plan/support/spanned.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using test::kMiB;

// Returns a graph of two operators, plus `more`, and the loss. Each operator reads the
// previous result, and sometimes the one before.
Program small_graph(choices::Draws& draws, int more) {
  test::GraphBuilder builder("small", kMiB);
  std::vector<Slot> made = {builder.input()};
  for (int operators = draws.in(2, 3) + more; operators > 0; --operators) {
    std::vector<Slot> in = {made.back()};
    if (made.size() > 2 && draws.one_in(2)) in.push_back(made[made.size() - 2]);
    const test::Stage stage{.out_bytes = draws.in(6, 24) * 2 * kMiB,
                            .more_bytes = draws.one_in(3) ? draws.in(6, 24) * 2 * kMiB : 0,
                            .forward_ns = draws.in(1, 40) * std::int64_t{100'000},
                            .backward_ns = draws.in(1, 40) * std::int64_t{100'000}};
    const bool output = draws.one_in(2);
    made.push_back(builder.op(in, stage, !output || draws.one_in(3), output));
  }
  for (std::size_t i = 1; i + 1 < made.size(); ++i) builder.free(made[i]);
  return builder.finish(made.back());
}

struct Ran {
  std::int64_t bytes = 0;  // allocated bytes at the peak
  sim::Time ns = 0;
};

std::vector<Ran> run_every_spans(const Program& program, const Hardware& card) {
  std::set<std::vector<PlanSpan>> known;
  std::vector<Ran> runs;
  test::for_each_spans(program, [&](const std::vector<PlanSpan>& spans) {
    if (!known.insert(spans).second) return;
    sim::SimulationOptions options;
    options.spans = spans;
    options.check = false;
    const sim::Simulation run = sim::simulate(program, card, options);
    if (run.errors.empty()) runs.push_back({run.device_peak_bytes, run.step_ns});
  });
  return runs;
}

struct Campaign {
  int more = 0;  // further operators of each program
  std::size_t plans = 0, budgets = 0, fastest = 0, none = 0, below_bound = 0, proved = 0;
  std::map<std::int64_t, int> behind;  // programs, by permille above the fastest

  void try_program(int number) {
    choices::Draws draws(43, static_cast<std::uint64_t>(number));
    const Program program = small_graph(draws, more);
    Hardware card = test::tiny_hardware();
    card.host_memory_bytes = 0;
    card.memory_bytes_per_us = 1'000'000;
    card.link.d2h_alone = card.link.d2h_both = 1;  // so the bound counts recomputes only
    const std::vector<Ran> runs = run_every_spans(program, card);
    const LowerBound bound(trace_keep(program, card), card, true);
    plans += runs.size();
    std::set<std::int64_t> sizes;
    for (const Ran& run : runs) {
      const auto least = bound.step_ns(run.bytes);
      below_bound += !least || run.ns < *least;
      sizes.insert(run.bytes);
    }
    for (const std::int64_t budget : sizes) {
      const sim::Time least = try_budget(number, program, card, runs, budget);
      proved += least - *bound.step_ns(budget) <= 1'000;
    }
  }

  // Returns the step time of the fastest run that fits.
  sim::Time try_budget(int number, const Program& program, const Hardware& card,
                       const std::vector<Ran>& runs, std::int64_t budget) {
    std::optional<sim::Time> least;
    for (const Ran& run : runs) {
      if (run.bytes <= budget) least = least ? std::min(*least, run.ns) : run.ns;
    }
    PlanRequest request;
    request.policies = {Policy::kBest};
    request.budget_bytes = budget;
    request.judged = Judged::kAllocated;
    request.check = false;
    const PlanResult result = plan(program, card, request);
    const PolicyRow& best = result.rows.front();
    ++budgets;
    if (!best.is_answer()) {
      ++none;
    } else if (best.simulation.step_ns <= *least) {
      ++fastest;
    } else {
      behind[slowdown_permille(best.simulation.step_ns, *least) - 1000] = number;
    }
    return *least;
  }
};

void try_programs(Campaign& campaign, int programs) {
  for (int number = 0; number < programs; ++number) campaign.try_program(number);
  std::printf(
      "%d programs, %zu plans, %zu budgets: best is the fastest in %zu, slower in %zu, "
      "and finds none in %zu; the bound says so of %zu\n",
      programs, campaign.plans, campaign.budgets, campaign.fastest,
      campaign.budgets - campaign.fastest - campaign.none, campaign.none, campaign.proved);
  int listed = 0;
  const bool lists = test::plans_are_asked();
  for (auto each = campaign.behind.rbegin(); lists && each != campaign.behind.rend(); ++each) {
    if (++listed > 10) break;
    std::printf("  program %d: %lld in a thousand\n", each->second,
                static_cast<long long>(each->first));
  }
}

TEST(SpanSearchProp, AgainstAllSpansOfSmallForwards) {
  Campaign campaign;
  try_programs(campaign, test::asked_programs(24));
  EXPECT_EQ(campaign.below_bound, 0u);
  EXPECT_EQ(campaign.fastest, campaign.budgets);
}

// These have a hundred times as many sets of spans, of which the best-first search tries some.
TEST(SpanSearchProp, AgainstAllSpansOfLargerForwards) {
  Campaign campaign;
  campaign.more = 2;
  try_programs(campaign, test::asked_programs(120) / 40);
  EXPECT_EQ(campaign.below_bound, 0u);
  EXPECT_EQ(campaign.none, 0u);
  EXPECT_GE(campaign.fastest * 10, campaign.budgets * 9);
}

}  // namespace
}  // namespace ferry::plan
