#include "sim/plan/planner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "formats/decision_log.h"
#include "formats/modules.h"
#include "formats/outline.h"
#include "formats/program_file.h"
#include "sim/field/stash.h"
#include "sim/plan/best.h"
#include "sim/plan/policies.h"
#include "sim/run/permille.h"

namespace ferry::plan {
namespace {

// The problem to plan: the program, cut at its segments.
struct Problem {
  const Program& whole;
  Program program;
  const Hardware& hardware;
  Survey survey;

  sim::Simulation run(const Candidate& candidate, const PlanRequest& request, bool check,
                      std::vector<StreamOpConsumer*> consumers = {}) const {
    sim::SimulationOptions options;
    options.offload = candidate.options;
    if (candidate.trl) {
      options.scheduler = [](sim::SimDevice device, sim::SimAutograd autograd) {
        return field::make_stash(device, autograd, field::trl());
      };
    }
    const Outlined* own = candidate.outlined.get();
    options.segments = segment_plan(own ? own->survey : survey, candidate.mix);
    options.optimizer = request.optimizer;
    options.check = check;
    options.consumers = std::move(consumers);
    return sim::simulate(own ? own->program : program, hardware, options);
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

// The costs of candidates, unchecked. Policies share candidates; each is simulated once.
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

  // Equal for equal candidates.
  std::string key(const Candidate& candidate) const {
    std::string key;
    if (candidate.options) {
      key = decision_header(*candidate.options);
      if (candidate.options->offload.empty()) key += "all";
    }
    if (candidate.trl) key += "TRL";
    const Outlined* own = candidate.outlined.get();
    for (const std::string& module : own ? own->modules : std::vector<std::string>()) {
      key += module + "\n";
    }
    const auto segments = segment_plan(own ? own->survey : problem_.survey, candidate.mix);
    for (const SegmentPlan& segment : segments->segments) {
      key += segment.checkpoint ? 'r' : '-';
      for (const SavedChoice choice : segment.choices) {
        key += static_cast<char>('0' + static_cast<int>(choice));
      }
    }
    return key;
  }

  // Uses all processors. The results do not depend on their number.
  void simulate(std::string_view what, const std::vector<Trial>& trials, std::size_t known) const {
    const std::size_t all = trials.size() + known;
    std::atomic<std::size_t> next = 0;
    std::atomic<std::size_t> done = known;
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&](bool reports) {
      try {
        for (std::size_t i = next++; i < trials.size(); i = next++) {
          throw_if(request_.stop);
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
    helpers.clear();  // joins them before the results are destroyed
    if (failure) std::rethrow_exception(failure);
    if (request_.progress) request_.progress(what, all, all);
  }

  const Problem& problem_;
  const PlanRequest& request_;
  std::map<std::string, Cost> known_;
};

// The names of the codes that segments run, in calling order.
std::vector<std::string> segment_names(const Program& program, const Survey& survey) {
  std::vector<std::string> names;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call || call->recompute == Recompute::kNone) continue;
      names.push_back(program.codes[call->code].name);
    }
  }
  // If one runs more than once, or inside another, names by statement are useless.
  if (names.size() != survey.segments.size()) names.assign(survey.segments.size(), "");
  return names;
}

// Chooses how a policy runs the step.
class Chooser {
 public:
  Chooser(const Problem& problem, const PlanRequest& request, const Cost& keep)
      : problem_(problem),
        limits_{request.budget_bytes, problem.hardware.host_memory_bytes,
                keep.fails ? kUnlimited : keep.device_reserved_bytes},
        keep_(keep),
        costs_(problem, request) {}

  const Limits& limits() const { return limits_; }

  Candidate choose(Policy policy) {
    const Survey& found = problem_.survey;
    const std::string_view what = name(policy);
    if (is_for_segments(policy) && found.segments.empty()) {
      throw std::invalid_argument("policy '" + std::string(what) +
                                  "' needs segments: " + kNoSegments);
    }
    const Search& search = search_of(policy);
    std::vector<Candidate> all = search.candidates(found);
    std::size_t picked = pick(search, all);
    if (search.choice == Choice::kBest && !is_as_fast_as_keep(what, all[picked])) {
      BestSearch best(problem_.whole, problem_.hardware);
      std::vector<Candidate> tried = best.search(
          limits_, [&](const std::vector<Candidate>& some) { return costs_.of(what, some); });
      std::move(tried.begin(), tried.end(), std::back_inserter(all));
      picked = pick(search, all);
    }
    return std::move(all[picked]);
  }

 private:
  // True if it fits and nothing can be faster.
  bool is_as_fast_as_keep(std::string_view what, const Candidate& candidate) {
    const Cost cost = costs_.of(what, {candidate}).front();
    return !cost.fails && fits(cost, limits_) && cost.step_ns <= keep_.step_ns;
  }
  std::size_t pick(const Search& search, const std::vector<Candidate>& all) {
    const std::string_view what = name(search.policy);
    switch (search.choice) {
      case Choice::kOnly:
        return 0;
      case Choice::kFastest:
      case Choice::kBest:
        return pick_fastest(costs_.of(what, all), limits_);
      case Choice::kFullSpeed:
        break;
    }
    const sim::Time computes =
        search.baseline ? costs_.of(what, {search.baseline(problem_.survey)}).front().step_ns
                        : keep_.step_ns;
    return pick_full_speed(costs_.of(what, all), limits_, computes, problem_.hardware.link);
  }

  const Problem& problem_;
  const Limits limits_;
  const Cost keep_;
  Costs costs_;
};

}  // namespace

bool has_segments(const Program& program) { return has_checkpoints(with_segments(program)); }

Program with_segments(const Program& program) {
  if (has_checkpoints(program)) return program;
  std::vector<std::string> modules = segment_modules(program);
  // Leaving a call out would shift the numbers by which a plan knows the calls after it.
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

Program with_segments(const Program& program, const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanSegment& segment : plan.segments) names.push_back(segment.name);
  const std::optional<CodeId> forward = forward_code(program);
  if (names.empty() || !forward || has_checkpoints(program) || marks_calls(program)) {
    return with_segments(program);
  }
  std::set<std::string> modules;
  for (const ModuleRun& run : module_runs(program.codes[*forward].statements)) {
    modules.insert(run.module);
  }
  const bool own = std::all_of(names.begin(), names.end(),
                               [&](const std::string& name) { return modules.contains(name); });
  return own ? outline(program, names) : with_segments(program);
}

PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{program, with_segments(program), hardware, {}};
  problem.survey = survey(problem.program, hardware);
  PlanResult result;
  StopsRun stops(request.stop);
  std::vector<StreamOpConsumer*> asks;
  if (request.stop) asks.push_back(&stops);
  std::vector<StreamOpConsumer*> consumers = request.consumers;
  consumers.insert(consumers.end(), asks.begin(), asks.end());
  try {
    const Candidate all{std::nullopt, keep_all(problem.survey)};
    const Cost keep = cost_of(problem.run(all, request, false, asks));
    Chooser chooser(problem, request, keep);
    result.keep_ns = keep.step_ns;
    result.keep_bytes = chooser.limits().keep_bytes;
    result.certificate =
        certify(problem.program, hardware, request.optimizer, request.budget_bytes);
    for (const Policy policy : request.policies) {
      Candidate candidate = chooser.choose(policy);
      sim::Simulation simulation = problem.run(candidate, request, request.check, consumers);
      const Cost cost = cost_of(simulation);
      result.rows.push_back({std::string(name(policy)), std::move(candidate), std::move(simulation),
                             fits(cost, chooser.limits()), is_useless(cost, chooser.limits())});
    }
  } catch (const Stopped&) {
    result.stopped = true;
  }
  result.segments = segment_names(problem.program, problem.survey);
  result.survey = std::move(problem.survey);
  return result;
}

std::int64_t slowdown_permille(sim::Time step_ns, sim::Time keep_ns) {
  return keep_ns == 0 ? 1000 : sim::permille(step_ns, keep_ns, sim::Round::kUp);
}

const PolicyRow* best_row(const PlanResult& result) {
  if (result.rows.size() == 1) {
    const PolicyRow& asked = result.rows.front();
    return asked.is_safe() && asked.has_plan() ? &asked : nullptr;
  }
  const auto key = [](const PolicyRow& row) {
    const sim::Time time = row.simulation.step_ns;
    const std::int64_t bytes = row.simulation.device_reserved_bytes;
    const bool answer = row.is_answer();
    return std::tuple(!answer, answer ? time : bytes, answer ? bytes : time);
  };
  const PolicyRow* best = nullptr;
  for (const PolicyRow& row : result.rows) {
    if (!row.is_safe() || !row.has_plan()) continue;
    if (!best || key(row) < key(*best)) best = &row;
  }
  return best;
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
  const Outlined* own = row.candidate.outlined.get();
  if (some) plan.segments = plan_segments(mix, own ? own->modules : result.segments);
  plan.entries = plan_entries(own ? own->survey : result.survey, mix);
  return plan;
}

}  // namespace ferry::plan
