#include "plan/polish.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace ferry::plan {
namespace {

constexpr std::size_t kTries = 8;  // in a round
// Of the ways to have less, in a round. Each is weighed tensor by tensor, so fewer of a large plan.
constexpr std::size_t kWeighed = 1'024;
constexpr std::size_t kWeighedLeast = 32;
constexpr std::size_t kWeighedPacks = 1'024'000;
constexpr std::size_t kInVain = 4;    // starts in a row that gain little: then none follows
constexpr sim::Time kLittle = 5'000;  // the part of the step that is little

Candidate remade(const Candidate& of, Mix mix, const Survey& survey) {
  Candidate made = settled(of.options.value_or(CoreOptions()), std::move(mix), survey);
  made.outlined = of.outlined;
  return made;
}

Mix without_recompute(Mix mix, const Survey& survey, std::size_t segment) {
  mix.recompute[segment] = false;
  for (std::size_t p = survey.segments[segment].first; p < survey.segments[segment].end; ++p) {
    if (mix.packs[p] == PlanChoice::kRecompute) mix.packs[p] = PlanChoice::kKeep;
  }
  return mix;
}

Mix without_move(Mix mix, const Survey& survey, std::uint64_t group) {
  for (std::size_t p = 0; p < survey.packs.size(); ++p) {
    const bool of_it = survey.packs[p].group == group;
    if (of_it && mix.packs[p] == PlanChoice::kOffload) mix.packs[p] = PlanChoice::kKeep;
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    for (std::size_t i = 0; i < mix.input_moves[s].size(); ++i) {
      if (survey.segments[s].inputs[i].group == group) mix.input_moves[s][i] = false;
    }
  }
  return mix;
}

}  // namespace

std::vector<Candidate> with_less(const Candidate& candidate, const Survey& survey) {
  const Mix& mix = candidate.mix;
  std::vector<std::size_t> recomputed;
  for (std::size_t s = 0; s < mix.recompute.size(); ++s) {
    if (mix.recompute[s]) recomputed.push_back(s);
  }
  const std::set<std::uint64_t> groups = moved_groups(mix, survey);
  const std::vector<std::uint64_t> moved(groups.begin(), groups.end());
  const std::size_t all = recomputed.size() + moved.size();
  const std::size_t most =
      std::clamp(kWeighedPacks / (survey.packs.size() + 1), kWeighedLeast, kWeighed);
  const std::size_t every = all / (most + 1) + 1;
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < all; i += every) {
    Mix less = i < recomputed.size() ? without_recompute(mix, survey, recomputed[i])
                                     : without_move(mix, survey, moved[i - recomputed.size()]);
    found.push_back(remade(candidate, std::move(less), survey));
  }
  return found;
}

namespace {

void polish_one(std::string_view what, const Problem& problem, const Limits& limits,
                std::size_t rounds, Trials& trials, const Tried& start) {
  Candidate candidate = start.candidate;
  sim::Time step_ns = start.within(limits).step_ns;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Candidate> less = with_less(candidate, problem.survey_of(candidate));
    std::vector<std::pair<sim::Time, std::size_t>> order;
    for (std::size_t i = 0; i < less.size(); ++i) {
      const Floor floor = trials.floor(less[i], limits);
      if (floor.bytes > limits.budget_bytes || floor.step_ns >= step_ns) continue;
      order.emplace_back(floor.step_ns, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Candidate> tries;
    for (std::size_t i = 0; i < std::min(order.size(), kTries); ++i) {
      tries.push_back(std::move(less[order[i].second]));
    }
    if (tries.empty()) return;
    std::vector<Cost> costs;
    for (const auto& each : trials.at_budget(what, tries, limits)) costs.push_back(each.cost);
    const std::size_t pick = pick_fastest(costs, limits);
    if (!is_answer(costs[pick], limits) || costs[pick].step_ns >= step_ns) return;
    candidate = std::move(tries[pick]);
    step_ns = costs[pick].step_ns;
  }
}

}  // namespace

void polish(std::string_view what, const Problem& problem, const Limits& limits, std::size_t rounds,
            std::size_t starts, Trials& trials) {
  std::vector<std::pair<Cost, const Tried*>> order;
  for (const Tried& each : trials.all()) {
    const Cost cost = each.within(limits);
    if (each.done && !each.candidate.trl && is_answer(cost, limits))
      order.emplace_back(cost, &each);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.step_ns, a.first.device_reserved_bytes) <
           std::pair(b.first.step_ns, b.first.device_reserved_bytes);
  });
  std::set<const Outlined*> polished;
  std::size_t in_vain = 0;
  for (const auto& [cost, each] : order) {
    if (polished.size() == starts || in_vain == kInVain) return;
    if (!polished.insert(each->candidate.outlined.get()).second) continue;
    const sim::Time before = trials.fitting(limits)->step_ns;
    polish_one(what, problem, limits, rounds, trials, *each);
    const sim::Time gained = before - trials.fitting(limits)->step_ns;
    in_vain = gained > before / kLittle ? 0 : in_vain + 1;
  }
}

}  // namespace ferry::plan
