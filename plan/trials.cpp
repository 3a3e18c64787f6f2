#include "plan/trials.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "formats/decision_log.h"
#include "sim/field/stash.h"

namespace ferry::plan {
namespace {

// Candidates that are simulated together before the results rule out others. Larger: better use of
// many processors, more candidates simulated.
constexpr std::size_t kBatch = 8;
// Bound on batches in a row without improvement, if the search may end early (`sieve`). Candidates
// with the lowest floors come first. Larger: the search ends later.
constexpr std::size_t kInVain = 8;

// True if no candidate with this floor could be picked instead of the best.
bool rules_out(const Cost& best, const Floor& floor, const Limits& limits) {
  if (best.fails || is_useless(best, limits)) return false;
  const bool cannot_fit = floor.bytes > limits.budget_bytes;
  if (fits(best, limits)) return cannot_fit || floor.step_ns > best.step_ns;
  return cannot_fit && !pins_too_much(best, limits) && floor.bytes > best.device_reserved_bytes;
}

std::string key_of(const std::vector<PlanSpan>& spans) {
  std::string key;
  for (const PlanSpan& span : spans) {
    key += "span " + std::to_string(span.first) + "-" + std::to_string(span.last);
    for (const std::uint64_t kept : span.keep) key += " " + std::to_string(kept);
    if (!span.inner.empty()) key += " (" + key_of(span.inner) + ")";
    key += "\n";
  }
  return key;
}

field::StashPolicy stash_policy(OffloadAll whose) {
  switch (whose) {
    case OffloadAll::kTrl:
      return field::trl();
    case OffloadAll::kTrlUntold:
      return field::trl_untold();
    case OffloadAll::kTrlStaleKeys:
      return field::trl_with_stale_keys();
    case OffloadAll::kRecordStream:
      return field::by_record_stream();
  }
  return field::trl();
}

}  // namespace

sim::Simulation Problem::run(const Candidate& candidate, const How& how) const {
  sim::SimulationOptions options;
  options.offload = candidate.options;
  if (candidate.trl) {
    options.scheduler = [this](sim::SimDevice device, sim::SimAutograd autograd) {
      return field::make_stash(device, autograd, stash_policy(offload_all));
    };
    options.host_pool = sim::HostPoolKind::kPyTorchs;
  }
  options.segments = segment_plan(survey_of(candidate), candidate.mix);
  options.training = training;
  if (!how.whole) options.training.steps = tried_steps();
  options.workspace_bytes = workspace_bytes;
  options.alloc_conf = alloc_conf;
  options.device_bytes = how.device_bytes;
  options.check = how.check;
  options.consumers = how.consumers;
  options.trace = how.trace;
  options.recorder = how.recorder;
  options.memory = how.memory;
  if (!candidate.spanned) {
    options.prepared = prepared_program;
    return sim::simulate(program, hardware, options);
  }
  options.spans = candidate.spanned->spans;
  options.prepared = prepared_whole;
  return sim::simulate(whole, hardware, options);
}

Cost Tried::within(const Limits& limits) const {
  Cost found = cost;
  found.fails = found.fails || !done;
  if (found.fails || found.device_reserved_bytes <= limits.budget_bytes) return found;
  for (auto each = at.upper_bound(limits.budget_bytes); each != at.begin();) {
    --each;
    if (!each->second) continue;
    found.step_ns = each->second->step_ns;
    found.retries = each->second->retries;
    found.device_reserved_bytes = each->first;
    return found;
  }
  return found;
}

std::string Trials::key(const Candidate& candidate) const {
  std::string key;
  if (candidate.options) {
    key = decision_header(*candidate.options);
    if (candidate.options->offload.empty()) key += "all";
  }
  if (candidate.trl) key += "TRL";
  if (candidate.spanned) key += key_of(candidate.spanned->spans);
  const auto segments = segment_plan(problem_.survey_of(candidate), candidate.mix);
  for (const SegmentPlan& segment : segments->segments) {
    key += segment.checkpoint ? 'r' : '-';
    for (const SavedChoice choice : segment.choices) {
      key += static_cast<char>('0' + static_cast<int>(choice));
    }
  }
  return key;
}

std::vector<Cost> Trials::of(std::string_view what, const std::vector<Candidate>& candidates) {
  std::vector<Cost> costs;
  for (const Found& each : unlimited(what, candidates)) costs.push_back(each.cost);
  return costs;
}

std::vector<Trials::Found> Trials::unlimited(std::string_view what,
                                             const std::vector<Candidate>& candidates) {
  std::vector<Found> found;
  for (const Tried* each : some_of(what, candidates, 0, candidates.size())) {
    found.push_back({each, each->cost});
  }
  return found;
}

std::vector<Trials::Found> Trials::within(std::string_view what,
                                          const std::vector<Candidate>& candidates,
                                          const Limits& limits) {
  const std::vector<Tried*> all = some_of(what, candidates, 0, candidates.size());
  const std::optional<Cost> best = fitting(limits);
  std::vector<Tried*> tight;
  for (Tried* each : all) {
    const Cost& cost = each->cost;
    if (cost.fails || fits(cost, limits) || pins_too_much(cost, limits)) continue;
    if (problem_.judged != Judged::kReserved || is_useless(cost, limits)) continue;
    const bool may_be_best = !best || cost.step_ns < best->step_ns;
    if (may_be_best && cost.device_peak_bytes <= limits.budget_bytes) tight.push_back(each);
  }
  run_at(what, tight, limits.budget_bytes);
  return found(all, limits);
}

std::vector<Trials::Found> Trials::at_budget(std::string_view what,
                                             const std::vector<Candidate>& candidates,
                                             const Limits& limits) {
  if (problem_.judged != Judged::kReserved || !fitting(limits)) {
    return within(what, candidates, limits);
  }
  std::vector<Tried*> all;
  for (const Candidate& candidate : candidates) all.push_back(known(candidate));
  run_at(what, all, limits.budget_bytes);
  return found(all, limits);
}

std::vector<Trials::Found> Trials::found(const std::vector<Tried*>& all, const Limits& limits) {
  std::vector<Found> found;
  for (const Tried* each : all) found.push_back({each, each->within(limits)});
  return found;
}

// Simulates the trials at a capacity, except those whose result there is known.
void Trials::run_at(std::string_view what, const std::vector<Tried*>& trials,
                    std::int64_t capacity) {
  std::vector<Tried*> fresh;
  for (Tried* each : trials) {
    const Cost& cost = each->cost;
    const bool is_known =
        each->done && each->capacity == 0 &&
        (cost.fails || cost.device_reserved_bytes <= capacity || cost.device_peak_bytes > capacity);
    if (!is_known && each->at.try_emplace(capacity).second) fresh.push_back(each);
  }
  simulate(what, fresh, trials.size() - fresh.size(), trials.size(), [&](Tried& each) {
    const Cost cost = problem_.cost(each.candidate, capacity);
    if (cost.fails) return;
    each.at.at(capacity) = cost;
    // Keep the known cost with more memory.
    if (each.done && (each.capacity == 0 || each.capacity > capacity)) return;
    each.cost = cost;
    each.capacity = capacity;
    each.done = true;
  });
}

Tried* Trials::known(const Candidate& candidate) {
  Tried*& known = known_[key(candidate)];
  if (!known) known = &tried_.emplace_back(Tried{candidate, {}});
  return known;
}

std::vector<Tried*> Trials::some_of(std::string_view what, const std::vector<Candidate>& candidates,
                                    std::size_t before, std::size_t whole) {
  std::vector<Tried*> all, fresh;
  for (const Candidate& candidate : candidates) {
    Tried* const each = known(candidate);
    all.push_back(each);
    const bool asked = std::find(fresh.begin(), fresh.end(), each) != fresh.end();
    if ((!each->done || each->capacity > 0) && !asked) fresh.push_back(each);
  }
  simulate(what, fresh, before + candidates.size() - fresh.size(), whole, [&](Tried& each) {
    each.cost = problem_.cost(each.candidate);
    each.capacity = 0;
    each.done = true;
  });
  return all;
}

// Runs the trials on all processors. The results do not depend on the number of processors.
void Trials::simulate(std::string_view what, const std::vector<Tried*>& trials, std::size_t before,
                      std::size_t whole, const Run& run) const {
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = before;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&](bool reports) {
    try {
      for (std::size_t i = next++; i < trials.size(); i = next++) {
        throw_if(stop_);
        run(*trials[i]);
        ++done;
        if (reports && progress_) progress_(what, done, whole);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = trials.size();
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t most = std::max(std::thread::hardware_concurrency(), 1u);
  for (std::size_t i = 1; i < std::min(most, trials.size()); ++i) helpers.emplace_back(work, false);
  work(true);
  helpers.clear();  // joins them before the results are destroyed
  if (failure) std::rethrow_exception(failure);
  if (progress_) progress_(what, before + trials.size(), whole);
}

std::map<std::size_t, Cost> Trials::sieve(std::string_view what,
                                          const std::vector<Candidate>& candidates,
                                          const Limits& limits, const Cost* known, bool all_of) {
  std::vector<Floor> floors;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    floors.push_back(floor(candidates[i], limits));
    order.push_back(i);
  }
  const auto cannot_fit = [&](std::size_t i) { return floors[i].bytes > limits.budget_bytes; };
  // First those that may fit, by time; then the others, by memory.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t i) {
      return std::pair(cannot_fit(i), cannot_fit(i) ? floors[i].bytes : floors[i].step_ns);
    };
    return rank(a) < rank(b);
  });
  std::map<std::size_t, Cost> seen;
  std::optional<Cost> best;
  if (known) best = *known;
  std::size_t in_vain = 0;
  for (std::size_t at = 0; at < order.size();) {
    if (known && in_vain == kInVain && !(all_of && is_answer(*best, limits))) break;
    std::vector<Candidate> batch;
    std::vector<std::size_t> numbers;
    for (; at < order.size() && batch.size() < kBatch; ++at) {
      if (best && rules_out(*best, floors[order[at]], limits)) continue;
      numbers.push_back(order[at]);
      batch.push_back(candidates[order[at]]);
    }
    if (batch.empty()) break;
    const std::vector<Tried*> tried = some_of(what, batch, at - batch.size(), order.size());
    ++in_vain;
    for (std::size_t i = 0; i < tried.size(); ++i) {
      const Cost& cost = seen[numbers[i]] = tried[i]->cost;
      if (best && pick_fastest({*best, cost}, limits) == 0) continue;
      best = cost;
      in_vain = 0;
    }
  }
  return seen;
}

std::size_t Trials::fastest(std::string_view what, const std::vector<Candidate>& candidates,
                            const Limits& limits) {
  std::vector<std::size_t> numbers;
  std::vector<Cost> costs;
  for (const auto& [number, cost] : sieve(what, candidates, limits, nullptr, true)) {
    numbers.push_back(number);
    costs.push_back(cost);
  }
  return numbers[pick_fastest(costs, limits)];
}

std::vector<Floor> Trials::floors_for_any_budget(const std::vector<Candidate>& candidates) const {
  std::vector<Floor> floors;
  for (const Candidate& each : candidates) floors.push_back(floor(each, {kUnlimited, 0, 0}));
  return floors;
}

void Trials::try_better(std::string_view what, const std::vector<Candidate>& candidates,
                        const std::vector<Floor>& floors, const Limits& limits, bool all_of) {
  const Tried* known = best(limits);
  const Cost known_cost = known ? known->within(limits) : Cost();
  std::vector<Candidate> open;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!known || !rules_out(known_cost, floors[i], limits)) open.push_back(candidates[i]);
  }
  sieve(what, open, limits, known ? &known_cost : nullptr, all_of);
}

const Tried* Trials::best(const Limits& limits) const {
  std::vector<const Tried*> done;
  std::vector<Cost> costs;
  for (const Tried& each : tried_) {
    if (!each.done || each.candidate.trl) continue;
    done.push_back(&each);
    costs.push_back(each.within(limits));
  }
  return done.empty() ? nullptr : done[pick_fastest(costs, limits)];
}

std::optional<Cost> Trials::fitting(const Limits& limits) const {
  const Tried* found = best(limits);
  if (!found) return std::nullopt;
  const Cost cost = found->within(limits);
  return is_answer(cost, limits) ? std::optional(cost) : std::nullopt;
}

}  // namespace ferry::plan
