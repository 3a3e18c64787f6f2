#include "sim/planner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "formats/outline.h"
#include "formats/program_file.h"

namespace ferry::sim {
namespace {

// What is planned: the program, cut at its segments.
struct Problem {
  Program program;
  const Hardware& hardware;
  Survey survey;

  Simulation run(const Candidate& candidate, const PlanRequest& request, bool check) const {
    SimulationOptions options;
    options.offload = candidate.options;
    if (!survey.segments.empty()) options.segments = segment_plan(survey, candidate.mix);
    options.optimizer = request.optimizer;
    options.check = check;
    return simulate(program, hardware, options);
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

// Simulates every candidate, unchecked, on all processors. The results do not depend on how many.
std::vector<Simulation> try_all(const Problem& problem, const PlanRequest& request,
                                std::string_view what, const std::vector<Candidate>& candidates) {
  std::vector<Simulation> results(candidates.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&](bool reports) {
    try {
      for (std::size_t i = next++; i < candidates.size(); i = next++) {
        results[i] = problem.run(candidates[i], request, false);
        ++done;
        if (reports && request.progress) request.progress(what, done, candidates.size());
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = candidates.size();
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < std::max(std::thread::hardware_concurrency(), 1u); ++i) {
    helpers.emplace_back(work, false);
  }
  work(true);
  helpers.clear();  // joined, before the results go
  if (failure) std::rethrow_exception(failure);
  if (request.progress) request.progress(what, candidates.size(), candidates.size());
  return results;
}

bool fits(const Simulation& simulation, const Hardware& hardware, const PlanRequest& request) {
  return simulation.device_reserved_bytes <= request.budget_bytes &&
         simulation.host_peak_bytes <= hardware.host_memory_bytes;
}

// The smallest window that costs at most 2 % over the best.
std::size_t pick_window(const std::vector<Simulation>& results) {
  Time best = results.front().step_ns;
  for (const Simulation& result : results) best = std::min(best, result.step_ns);
  std::size_t pick = 0;
  while (results[pick].step_ns > best + best / 50) ++pick;
  return pick;
}

// Of those that fit, the fastest; where none fits, the one that needs the least memory.
std::size_t pick_fastest(const std::vector<Simulation>& results, const Hardware& hardware,
                         const PlanRequest& request) {
  std::size_t pick = 0;
  const auto better = [&](const Simulation& a, const Simulation& b) {
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

}  // namespace

bool has_segments(const Program& program) {
  return has_checkpoints(program) || !repeated_modules(program).empty();
}

Program with_segments(const Program& program) {
  if (has_checkpoints(program)) return program;
  const std::vector<std::string> modules = repeated_modules(program);
  return modules.empty() ? program : outline(program, modules);
}

PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{with_segments(program), hardware, {}};
  problem.survey = survey(problem.program, hardware);
  const Survey& found = problem.survey;
  PlanResult result;
  result.keep_ns = problem.run({std::nullopt, keep_all(found)}, request, false).step_ns;
  for (const std::string& policy : request.policies) {
    const auto fastest = [&](const std::vector<Candidate>& candidates) {
      return candidates[pick_fastest(try_all(problem, request, policy, candidates), hardware,
                                     request)];
    };
    const auto smallest_window = [&](const std::vector<Candidate>& candidates) {
      return candidates[pick_window(try_all(problem, request, policy, candidates))];
    };
    Candidate candidate{std::nullopt, keep_all(found)};
    if (policy == "offload-all") {
      candidate = {trl_options(), prefetch_candidates(found).front().mix};
    } else if (policy == "prefetch") {
      candidate = smallest_window(prefetch_candidates(found));
    } else if (policy == "budget") {
      candidate = fastest(budget_candidates(found));
    } else if (is_for_segments(policy) && found.segments.empty()) {
      throw std::invalid_argument("policy '" + policy +
                                  "' needs segments: the program has neither checkpoints nor "
                                  "modules that repeat");
    } else if (policy == "checkpoint") {
      candidate = recompute_all(found);
    } else if (policy == "checkpoint-nth") {
      candidate = fastest(recompute_candidates(found));
    } else if (policy == "checkpoint-offload") {
      candidate = smallest_window(recompute_and_offload_candidates(found));
    } else if (policy == "mixed") {
      candidate = fastest(mixed_candidates(found));
    } else if (policy != "keep") {
      throw std::invalid_argument("no policy is called '" + policy + "': expected " +
                                  list_of_policies());
    }
    Simulation simulation = problem.run(candidate, request, request.check);
    const bool in_budget = fits(simulation, hardware, request);
    result.rows.push_back({policy, std::move(candidate), std::move(simulation), in_budget});
  }
  result.segments = segment_names(problem.program, found);
  result.survey = std::move(problem.survey);
  return result;
}

std::int64_t slowdown_permille(Time step_ns, Time keep_ns) {
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

}  // namespace ferry::sim
