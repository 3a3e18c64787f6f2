// Compares `best` with all plans of small random programs: no plan is below the bound, and `best`
// is often the fastest plan. A program is a chain of modules of one or two operators. Each module
// may be recomputed, and each of its saved tensors kept, offloaded or recomputed, with a narrow and
// a wide window.
//
// FERRY_PLANS=1000 tries 1,000 programs instead of a few, and lists those in which `best` is
// slowest relative to the fastest plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "formats/builder.h"
#include "formats/modules.h"
#include "formats/outline.h"
#include "plan/lower_bound.h"
#include "plan/planner.h"
#include "tests/plan/support/asked.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::kMiB;

// A chain y = op(x) in modules m.0, m.1 and so on. Each operator's node saves its input or its
// output.
class Modules {
 public:
  explicit Modules(choices::Draws& draws) : draws_(draws) {}

  Program make() {
    b_.program.name = "modules";
    weight_ = b_.global(GlobalKind::kParameter, b_.type({64}));
    forward_ = b_.code(CodeKind::kSegment, "forward");
    Slot x = op(weight_, b_.type({64}), false);
    const int modules = draws_.in(2, 4);
    for (int i = 0; i < modules; ++i) {
      const std::string name = "m." + std::to_string(i);
      b_.add(forward_, Module{name, true});
      for (int ops = draws_.in(1, 3); ops > 0; --ops) {
        const TypeId type = b_.type({draws_.in(6, 24) * kMiB});
        const Slot y = op(x, type, true);
        b_.add(forward_, Free{{x}});
        x = y;
      }
      b_.add(forward_, Module{name, false});
    }
    b_.result(forward_, op(x, b_.type({1}, DType::kF32), false));
    const Slot loss = b_.slot(0);
    b_.add(0, Call{forward_, {}, {loss}});
    b_.add(0, Backward{{loss}, {}, {}, false, false});
    return std::move(b_.program);
  }

 private:
  std::int64_t ns() { return draws_.in(1, 40) * std::int64_t{100'000}; }
  Slot op(Slot x, TypeId type, bool saves) {
    const CodeId body = b_.code(CodeKind::kBody, "Backward");
    const Slot gradient = b_.argument(body);
    std::vector<Slot> have = {gradient};
    const bool output = draws_.one_in(2);
    if (saves) have.push_back(b_.saved(body));
    const Slot result = b_.slot(body);
    b_.add(body, Op{"grad", std::move(have), {result}, {type_of(x)}, {}, 0, 0, 0, ns()});
    b_.result(body, result);
    const Slot y = b_.slot(forward_);
    types_.emplace_back(y, type);
    b_.add(forward_, Op{"op", {x}, {y}, {type}, {}, 0, 0, 0, ns()});
    b_.add(forward_, MakeNode{"Backward", b_.node_id(), {x}, {y}, {}, body});
    if (saves) {
      const auto* node =
          std::get_if<MakeNode>(&b_.program.codes[forward_].statements.back().action);
      b_.add(forward_, Save{node->id, {output ? y : x}});
    }
    return y;
  }
  TypeId type_of(Slot slot) {
    for (const auto& [known, type] : types_) {
      if (known == slot) return type;
    }
    return b_.type({64});
  }

  choices::Draws& draws_;
  Builder b_;
  Slot weight_ = 0;
  CodeId forward_ = 0;
  std::vector<std::pair<Slot, TypeId>> types_;
};

Hardware draw_card(choices::Draws& draws) {
  Hardware card = test::tiny_hardware();
  card.memory_bytes_per_us = 1'000'000;
  card.host_memory_bytes = std::int64_t{64} << 30;
  card.link.d2h_alone = card.link.d2h_both = draws.in(1'000, 40'000);
  card.link.h2d_alone = card.link.h2d_both = draws.in(1'000, 40'000);
  return card;
}

struct Ran {
  std::int64_t in_use = 0;
  std::int64_t reserved = 0;
  sim::Time ns = 0;
};

// Simulates all plans that recompute every segment of the program.
void run_all(const Program& program, const Hardware& card, std::vector<Ran>& runs) {
  const Survey found = survey(program, card);
  std::vector<std::size_t> movable;
  std::vector<bool> inside(found.packs.size(), false);
  std::int64_t largest = 0;
  for (const SurveyedSegment& segment : found.segments) {
    for (std::size_t p = segment.first; p < segment.end; ++p) inside[p] = true;
  }
  for (std::size_t p = 0; p < found.packs.size(); ++p) {
    if (!found.packs[p].exempt) movable.push_back(p);
    largest = std::max(largest, found.packs[p].storage_bytes);
  }
  std::size_t all = std::size_t{1} << found.segments.size();  // sets of segments whose inputs move
  for (std::size_t i = 0; i < movable.size(); ++i) all *= 3;
  for (std::size_t number = 0; number < 2 * all; ++number) {
    std::size_t rest = number / 2;
    Mix mix = keep_all(found);
    for (std::size_t s = 0; s < found.segments.size(); ++s, rest /= 2) {
      mix.recompute[s] = true;
      mix.input_moves[s].assign(found.segments[s].inputs.size(), rest % 2 != 0);
    }
    bool possible = true;
    for (const std::size_t p : movable) {
      mix.packs[p] = static_cast<PlanChoice>(rest % 3);
      possible = possible && (inside[p] || mix.packs[p] != PlanChoice::kRecompute);
      rest /= 3;
    }
    if (!possible) continue;
    CoreOptions options;
    const std::int64_t wide = 2 * largest;
    options.window_bytes = number % 2 ? wide : 0;
    options.prefetch_bytes = number % 2 ? 0 : wide;
    options.hold_bytes = wide;
    const Candidate candidate = settled(options, std::move(mix), found);
    sim::SimulationOptions simulated;
    simulated.offload = candidate.options;
    simulated.segments = segment_plan(found, candidate.mix);
    simulated.check = false;
    const sim::Simulation run = sim::simulate(program, card, simulated);
    if (!run.errors.empty()) continue;
    runs.push_back({run.device_peak_bytes, run.device_reserved_bytes, run.step_ns});
  }
}

std::vector<Ran> run_every_plan(const Program& program, const Hardware& card) {
  std::vector<std::string> names;
  for (const ModuleRun& run : module_runs(program.codes[*forward_code(program)].statements)) {
    names.push_back(run.module);
  }
  std::vector<Ran> runs;
  for (std::size_t set = 0; set < std::size_t{1} << names.size(); ++set) {
    std::vector<std::string> some;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (set >> i & 1) some.push_back(names[i]);
    }
    run_all(some.empty() ? program : outline(program, some), card, runs);
  }
  return runs;
}

struct Behind {
  std::int64_t permille = 0;  // above the fastest plan; 1'000'000: best found no plan
  int program = 0;
  std::int64_t budget_bytes = 0;
  bool operator<(const Behind& other) const {
    return std::tuple(-permille, program, budget_bytes) <
           std::tuple(-other.permille, other.program, other.budget_bytes);
  }
};

struct Campaign {
  std::size_t plans = 0, budgets = 0, below_bound = 0, below_high_bound = 0, fastest = 0;
  std::set<Behind> behind;

  void try_program(int number) {
    choices::Draws draws(29, static_cast<std::uint64_t>(number));
    const Program program = Modules(draws).make();
    const Hardware card = draw_card(draws);
    const std::vector<Ran> runs = run_every_plan(program, card);
    const LowerBound bound(trace_keep(program, card), card, outside_proof(program).empty());
    plans += runs.size();
    std::set<std::int64_t> sizes;
    for (const Ran& run : runs) {
      const auto least = bound.step_ns(run.in_use);
      const auto high = bound.step_ns(run.in_use - kMiB);
      below_bound += !least || run.ns < *least;
      below_high_bound += !high || run.ns < *high;
      sizes.insert(run.reserved);
    }
    const std::vector<std::int64_t> ordered(sizes.begin(), sizes.end());
    std::set<std::int64_t> asked;
    for (std::size_t part = 0; part < 4; ++part) asked.insert(ordered[ordered.size() * part / 5]);
    for (const std::int64_t budget : asked) try_budget(number, program, card, runs, budget);
  }

  void try_budget(int number, const Program& program, const Hardware& card,
                  const std::vector<Ran>& runs, std::int64_t budget) {
    std::optional<sim::Time> least;
    for (const Ran& run : runs) {
      if (run.reserved <= budget) least = least ? std::min(*least, run.ns) : run.ns;
    }
    PlanRequest request;
    request.policies = {Policy::kBest};
    request.budget_bytes = budget;
    request.check = false;
    const PlanResult result = plan(program, card, request);
    const PolicyRow& best = result.rows.front();
    ++budgets;
    if (!best.is_answer()) {
      behind.insert({1'000'000, number, budget});
    } else if (best.simulation.step_ns <= *least) {
      ++fastest;
    } else {
      behind.insert({slowdown_permille(best.simulation.step_ns, *least) - 1000, number, budget});
    }
  }
};

TEST(BestProp, AgainstAllPlansOfSmallPrograms) {
  const int programs = test::asked_programs(4);
  Campaign campaign;
  for (int number = 0; number < programs; ++number) campaign.try_program(number);
  EXPECT_EQ(campaign.below_bound, 0u);
  EXPECT_GT(campaign.below_high_bound, 0u);  // the plans find a bound that is too high
  const auto none = static_cast<std::size_t>(
      std::count_if(campaign.behind.begin(), campaign.behind.end(),
                    [](const Behind& each) { return each.permille == 1'000'000; }));
  std::printf(
      "%d programs, %zu plans, %zu budgets: best is the fastest in %zu, slower in %zu, "
      "and finds none in %zu\n",
      programs, campaign.plans, campaign.budgets, campaign.fastest, campaign.behind.size() - none,
      none);
  int listed = 0;
  for (const Behind& each : campaign.behind) {
    if (!test::plans_are_asked() || ++listed > 10) break;
    std::printf("  program %d, %lld bytes: %lld in a thousand\n", each.program,
                static_cast<long long>(each.budget_bytes), static_cast<long long>(each.permille));
  }
  EXPECT_GE(campaign.fastest * 2, campaign.budgets);
}

}  // namespace
}  // namespace ferry::plan
