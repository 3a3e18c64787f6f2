#include "sim/plan/planner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "formats/decision_log.h"
#include "formats/outline.h"
#include "formats/program_file.h"

namespace ferry::plan {
namespace {

// What is planned: the program, cut at its segments.
struct Problem {
  Program program;
  const Hardware& hardware;
  Survey survey;

  sim::Simulation run(const Candidate& candidate, const PlanRequest& request, bool check,
                      std::vector<StreamOpConsumer*> consumers = {}) const {
    sim::SimulationOptions options;
    options.offload = candidate.options;
    options.segments = segment_plan(survey, candidate.mix);
    options.optimizer = request.optimizer;
    options.check = check;
    options.consumers = std::move(consumers);
    return sim::simulate(program, hardware, options);
  }
};

bool recomputes(const Code& code) {
  return std::any_of(code.statements.begin(), code.statements.end(), [](const Statement& each) {
    const auto* call = std::get_if<Call>(&each.action);
    return call && call->recompute != Recompute::kNone;
  });
}

bool has_checkpoints(const Program& program) {
  return std::any_of(program.codes.begin(), program.codes.end(), recomputes);
}

// What a search looks at.
struct Cost {
  sim::Time step_ns = 0;
  std::int64_t device_reserved_bytes = 0;
  std::int64_t host_peak_bytes = 0;
};

Cost cost_of(const sim::Simulation& simulation) {
  return {simulation.step_ns, simulation.device_reserved_bytes, simulation.host_peak_bytes};
}

bool fits(const Cost& cost, const Hardware& hardware, const PlanRequest& request) {
  return cost.device_reserved_bytes <= request.budget_bytes &&
         cost.host_peak_bytes <= hardware.host_memory_bytes;
}

// What candidates cost, unchecked. Policies share candidates, and each is simulated once.
class Costs {
 public:
  Costs(const Problem& problem, const PlanRequest& request)
      : problem_(problem), request_(request) {}

  std::vector<Cost> of(std::string_view what, const std::vector<Candidate>& candidates) {
    std::vector<Cost*> costs;
    std::vector<Trial> trials;
    for (const Candidate& candidate : candidates) {
      const auto [known, fresh] = known_.try_emplace(key(candidate));
      costs.push_back(&known->second);
      if (fresh) trials.push_back({&candidate, &known->second});
    }
    simulate(what, trials, candidates.size() - trials.size());
    std::vector<Cost> result;
    for (const Cost* cost : costs) result.push_back(*cost);
    return result;
  }

 private:
  struct Trial {
    const Candidate* candidate;
    Cost* cost;
  };

  // Alike where the candidates are.
  std::string key(const Candidate& candidate) const {
    std::string key;
    if (candidate.options) {
      key = decision_header(*candidate.options);
      if (candidate.options->offload.empty()) key += "all";
    }
    const auto segments = segment_plan(problem_.survey, candidate.mix);
    for (const SegmentPlan& segment : segments->segments) {
      key += segment.checkpoint ? 'r' : '-';
      for (const SavedChoice choice : segment.choices) {
        key += static_cast<char>('0' + static_cast<int>(choice));
      }
    }
    return key;
  }

  // On all processors. The results do not depend on how many.
  void simulate(std::string_view what, const std::vector<Trial>& trials, std::size_t known) const {
    const std::size_t all = trials.size() + known;
    std::atomic<std::size_t> next = 0;
    std::atomic<std::size_t> done = known;
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&](bool reports) {
      try {
        for (std::size_t i = next++; i < trials.size(); i = next++) {
          *trials[i].cost = cost_of(problem_.run(*trials[i].candidate, request_, false));
          ++done;
          if (reports && request_.progress) request_.progress(what, done, all);
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = trials.size();
      }
    };
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < std::max(std::thread::hardware_concurrency(), 1u); ++i) {
      helpers.emplace_back(work, false);
    }
    work(true);
    helpers.clear();  // joined, before the results go
    if (failure) std::rethrow_exception(failure);
    if (request_.progress) request_.progress(what, all, all);
  }

  const Problem& problem_;
  const PlanRequest& request_;
  std::map<std::string, Cost> known_;
};

// The smallest window that costs at most 2 % over the best.
std::size_t pick_window(const std::vector<Cost>& results) {
  sim::Time best = results.front().step_ns;
  for (const Cost& result : results) best = std::min(best, result.step_ns);
  std::size_t pick = 0;
  while (results[pick].step_ns > best + best / 50) ++pick;
  return pick;
}

// Of those that fit, the fastest; where none fits, the one that needs the least memory.
std::size_t pick_fastest(const std::vector<Cost>& results, const Hardware& hardware,
                         const PlanRequest& request) {
  std::size_t pick = 0;
  const auto better = [&](const Cost& a, const Cost& b) {
    const bool a_fits = fits(a, hardware, request);
    const bool b_fits = fits(b, hardware, request);
    if (a_fits != b_fits) return a_fits;
    const auto by_time = std::pair(a.step_ns, a.device_reserved_bytes);
    const auto by_memory = std::pair(a.device_reserved_bytes, a.step_ns);
    return a_fits ? by_time < std::pair(b.step_ns, b.device_reserved_bytes)
                  : by_memory < std::pair(b.device_reserved_bytes, b.step_ns);
  };
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (better(results[i], results[pick])) pick = i;
  }
  return pick;
}

// Of the code that each runs, in the order in which they are called.
std::vector<std::string> segment_names(const Program& program, const Survey& survey) {
  std::vector<std::string> names;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call || call->recompute == Recompute::kNone) continue;
      names.push_back(program.codes[call->code].name);
    }
  }
  // Where one runs more than once, or inside another, names by statement say nothing.
  if (names.size() != survey.segments.size()) names.assign(survey.segments.size(), "");
  return names;
}

// How a policy runs the step.
Candidate choose(const std::string& policy, const Problem& problem, const PlanRequest& request,
                 Costs& costs) {
  const Survey& found = problem.survey;
  const auto fastest = [&](std::vector<Candidate> candidates) {
    const std::size_t pick = pick_fastest(costs.of(policy, candidates), problem.hardware, request);
    return std::move(candidates[pick]);
  };
  const auto smallest_window = [&](std::vector<Candidate> candidates) {
    return std::move(candidates[pick_window(costs.of(policy, candidates))]);
  };
  if (is_for_segments(policy) && found.segments.empty()) {
    throw std::invalid_argument("policy '" + policy + "' needs segments: " + kNoSegments);
  }
  if (policy == "keep") return {std::nullopt, keep_all(found)};
  if (policy == "offload-all") return offload_all(found);
  if (policy == "prefetch") return smallest_window(prefetch_candidates(found));
  if (policy == "budget") return fastest(budget_candidates(found));
  if (policy == "checkpoint") return recompute_all(found);
  if (policy == "checkpoint-nth") return fastest(recompute_candidates(found));
  if (policy == "checkpoint-offload") {
    return smallest_window(recompute_and_offload_candidates(found));
  }
  if (policy == "mixed") return fastest(mixed_candidates(found));
  throw std::invalid_argument("no policy is called '" + policy + "': expected " +
                              list_of_policies());
}

}  // namespace

bool has_segments(const Program& program) { return has_checkpoints(with_segments(program)); }

Program with_segments(const Program& program) {
  if (has_checkpoints(program)) return program;
  std::vector<std::string> modules = segment_modules(program);
  // A call left out would shift the numbers by which a plan knows those after it.
  if (marks_calls(program)) return outline(program, modules);
  std::erase_if(modules, [&](const std::string& module) {
    try {
      outline(program, std::span(&module, 1));
      return false;
    } catch (const std::invalid_argument&) {
      return true;  // its boundary cuts what a call cannot hand over
    }
  });
  return modules.empty() ? program : outline(program, modules);
}

PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{with_segments(program), hardware, {}};
  problem.survey = survey(problem.program, hardware);
  Costs costs(problem, request);
  PlanResult result;
  result.keep_ns = problem.run({std::nullopt, keep_all(problem.survey)}, request, false).step_ns;
  for (const std::string& policy : request.policies) {
    Candidate candidate = choose(policy, problem, request, costs);
    sim::Simulation simulation = problem.run(candidate, request, request.check, request.consumers);
    const bool in_budget = fits(cost_of(simulation), hardware, request);
    result.rows.push_back({policy, std::move(candidate), std::move(simulation), in_budget});
  }
  result.segments = segment_names(problem.program, problem.survey);
  result.survey = std::move(problem.survey);
  return result;
}

std::int64_t slowdown_permille(sim::Time step_ns, sim::Time keep_ns) {
  if (keep_ns == 0) return 1000;
  return (step_ns * 1000 + keep_ns - 1) / keep_ns;
}

Plan to_plan(const Program& program, const Hardware& hardware, const PlanResult& result,
             const PolicyRow& row) {
  Plan plan;
  plan.program = program.name;
  plan.program_digest = digest(program);
  plan.hardware = hardware.name;
  plan.policy = row.policy;
  plan.predicted = {row.simulation.device_peak_bytes, row.simulation.device_reserved_bytes,
                    row.simulation.host_peak_bytes, row.simulation.step_ns};
  const Mix& mix = row.candidate.mix;
  if (row.candidate.options) plan.options = plan_options(*row.candidate.options);
  const bool some =
      std::find(mix.recompute.begin(), mix.recompute.end(), true) != mix.recompute.end();
  if (some) plan.segments = plan_segments(mix, result.segments);
  plan.entries = plan_entries(result.survey, mix);
  return plan;
}

}  // namespace ferry::plan
