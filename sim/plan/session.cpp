#include "sim/plan/session.h"

#include <utility>
#include <variant>

#include "formats/modules.h"
#include "sim/plan/stop.h"

namespace ferry::plan {
namespace {

Problem problem_of(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{.whole = program,
                  .program = with_segments(program, request.modules),
                  .hardware = hardware,
                  .optimizer = request.optimizer,
                  .survey = {},
                  .spans = request.spans,
                  .modules = request.modules || marks_calls(program),
                  .alloc_conf = request.alloc_conf};
  problem.survey = survey(problem.program, hardware);
  return problem;
}

Cost cost_of_keep(const Problem& problem, const PlanRequest& request) {
  StopsRun stops(request.stop);
  std::vector<StreamOpConsumer*> consumers;
  if (request.stop) consumers.push_back(&stops);
  return cost_of(problem.run({std::nullopt, keep_all(problem.survey)}, false, consumers));
}

}  // namespace

Session::Session(const Program& program, const Hardware& hardware, const PlanRequest& request)
    : request_(request),
      problem_(problem_of(program, hardware, request)),
      keep_(cost_of_keep(problem_, request)),
      trace_(trace_keep(problem_.program, hardware, request.optimizer)),
      floors_(problem_.program, hardware, trace_),
      trials_(problem_, floors_, request.progress, request.stop),
      chooser_(problem_, keep_, trace_, trials_) {}

Limits Session::limits(std::int64_t budget_bytes) const {
  return {budget_bytes, problem_.hardware.host_memory_bytes,
          keep_.fails ? kUnlimited : keep_.device_reserved_bytes};
}

std::optional<Certificate> Session::certificate(std::int64_t budget_bytes) const {
  return certify(problem_.program, problem_.hardware, trace_, budget_bytes);
}

PolicyRow Session::row(Policy policy, Candidate candidate, const Limits& limits, bool stops) const {
  StopsRun stop(request_.stop);
  std::vector<StreamOpConsumer*> consumers = request_.consumers;
  if (stops && request_.stop) consumers.push_back(&stop);
  sim::Simulation simulation = problem_.run(candidate, request_.check, std::move(consumers),
                                            request_.trace, request_.memory);
  const Cost cost = cost_of(simulation);
  return {std::string(name(policy)), std::move(candidate), std::move(simulation),
          fits(cost, limits), is_useless(cost, limits)};
}

std::vector<std::string> Session::segments() const {
  std::vector<std::string> names;
  for (const Code& code : problem_.program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call || !is_segment(*call)) continue;
      names.push_back(problem_.program.codes[call->code].name);
    }
  }
  // If one runs more than once, or inside another, names by statement are useless.
  const std::size_t all = problem_.survey.segments.size();
  if (names.size() != all) names.assign(all, "");
  return names;
}

}  // namespace ferry::plan
