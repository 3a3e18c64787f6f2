#include "plan/planner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/modules.h"
#include "formats/outline.h"
#include "formats/program_file.h"
#include "plan/session.h"
#include "sim/run/training/permille.h"

namespace ferry::plan {
namespace {

bool recomputes(const Code& code) {
  return std::any_of(code.statements.begin(), code.statements.end(), [](const Statement& each) {
    const auto* call = std::get_if<Call>(&each.action);
    return call && is_segment(*call);
  });
}

bool has_checkpoints(const Program& program) {
  return std::any_of(program.codes.begin(), program.codes.end(), recomputes);
}

}  // namespace

bool has_segments(const Program& program, bool modules) {
  return has_checkpoints(with_segments(program, modules));
}

Program with_segments(const Program& program, bool modules) {
  if (has_checkpoints(program) || (!modules && !marks_calls(program))) return program;
  std::vector<std::string> names = segment_modules(program);
  if (names.empty()) return program;
  // Leaving out a call would change the numbers of the later calls in a plan.
  if (marks_calls(program)) return outline(program, names);
  try {
    return outline(program, names);
  } catch (const std::invalid_argument&) {
    if (marks_callable(program)) return program;
    // Some modules cannot be segments; find them below.
  }
  std::erase_if(names, [&](const std::string& module) {
    try {
      outline(program, std::span(&module, 1));
      return false;
    } catch (const std::invalid_argument&) {
      return true;  // something crosses its boundary that a call cannot pass on
    }
  });
  return names.empty() ? program : outline(program, names);
}

Program with_segments(const Program& program, const Plan& plan) {
  if (!plan.spans.empty()) return program;
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

Survey survey(const Program& program, const Hardware& hardware, const Plan& plan) {
  return plan.spans.empty() ? survey(program, hardware) : survey(program, hardware, plan.spans);
}

PolicyRow row_of(std::string policy, Candidate candidate, sim::Simulation run,
                 std::int64_t device_bytes, Verdict verdict, std::int64_t keep_bytes) {
  // With less memory it may run all the same, because the allocator frees its cache.
  const bool runs_in_less = verdict.fits && device_bytes > 0 && device_bytes < keep_bytes;
  const bool useless = verdict.judged_bytes > keep_bytes && !runs_in_less;
  return {.policy = std::move(policy),
          .candidate = std::move(candidate),
          .simulation = std::move(run),
          .fits = verdict.fits,
          .device_bytes = device_bytes,
          .useless = useless,
          .least_bytes = verdict.least_bytes,
          .refusal = std::move(verdict.refusal)};
}

namespace {

// `best` is far from the bound if it is more than this above it, in thousandths of the bound.
// Larger: expandable segments are tried less often.
constexpr std::int64_t kFarPermille = 15;

// Returns the row of `best` if it should be planned with expandable segments too: the request wants
// this, some plan may fit, and the row is far from the bound or does not fit. Otherwise null.
const PolicyRow* far_best(const PlanRequest& request, const PlanResult& result) {
  const bool usual = to_string(request.alloc_conf).empty();
  if (!request.expandable_too || !usual || request.judged != Judged::kReserved) return nullptr;
  const auto best = std::find_if(result.rows.begin(), result.rows.end(), [](const PolicyRow& row) {
    return row.policy == name(Policy::kBest);
  });
  if (best == result.rows.end() || !result.certificate || !result.certificate->step_ns) {
    return nullptr;
  }
  const sim::Time bound = *result.certificate->step_ns;
  const sim::Time near = bound + bound * kFarPermille / 1000;
  return best->is_answer() && best->simulation.step_ns <= near ? nullptr : &*best;
}

// Plans `best` with expandable segments if needed, and adds the row if it helps. Throws Stopped.
void add_expandable(const Program& program, const Hardware& hardware, const PlanRequest& request,
                    const std::shared_ptr<SpanTables>& tables, PlanResult& result) {
  const PolicyRow* const best = far_best(request, result);
  if (!best) return;
  PlanRequest other = request;
  other.alloc_conf.expandable_segments = true;
  Session session(program, hardware, other, tables);
  const Limits limits = session.limits(request.budget_bytes);
  session.try_first(best->candidate, limits);  // so the search skips slower candidates
  PolicyRow row = session.choose(Policy::kBest, limits);
  row.policy = kBestExpandable;
  const bool faster = row.simulation.step_ns < best->simulation.step_ns;
  if (row.is_answer() && (faster || !best->is_answer())) result.rows.push_back(std::move(row));
}

}  // namespace

PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  PlanResult result;
  std::optional<Session> session;
  try {
    session.emplace(program, hardware, request);
    const Limits limits = session->limits(request.budget_bytes);
    result.keep_ns = session->keeps().step_ns;
    result.keep_bytes = session->keeps().device_reserved_bytes;
    result.keep_judged_bytes = session->keep_judged_bytes();
    result.certificate = session->certificate(request.budget_bytes);
    for (const Policy policy : request.policies) {
      try {
        result.rows.push_back(session->choose(policy, limits));
      } catch (const Stopped&) {
        // The best candidate so far is an answer, although a full search might find a better one.
        if (policy == Policy::kBest && session->trials().fitting(limits)) {
          result.rows.push_back(session->best_by_then(limits));
        }
        throw;
      }
    }
    add_expandable(program, hardware, request, session->chooser().tables(), result);
  } catch (const Stopped&) {
    result.stopped = true;
  }
  if (session) {
    result.segments = session->segments();
    result.survey = session->survey();
  }
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
  plan.alloc_conf = row.alloc_conf;
  plan.predicted = {row.simulation.device_peak_bytes, row.simulation.device_reserved_bytes,
                    row.simulation.host_peak_bytes, row.simulation.step_ns};
  const Mix& mix = row.candidate.mix;
  if (row.candidate.options) plan.options = plan_options(*row.candidate.options);
  const bool some =
      std::find(mix.recompute.begin(), mix.recompute.end(), true) != mix.recompute.end();
  const Spanned* own = row.candidate.spanned.get();
  if (some) plan.segments = plan_segments(mix, result.segments);
  if (own) plan.spans = own->spans;
  plan.entries = plan_entries(own ? own->survey : result.survey, mix);
  return plan;
}

}  // namespace ferry::plan
