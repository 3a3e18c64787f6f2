#include "plan/pipeline_planner.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "formats/microbatches.h"
#include "formats/plan_options.h"
#include "formats/program_file.h"
#include "plan/stage_costs.h"

namespace ferry::plan {

namespace {

using Policies = std::vector<StagePolicy>;

// The costs that a search compares.
struct Cost {
  sim::Time step_ns = 0;
  std::vector<std::int64_t> reserved_bytes;  // by device
  std::int64_t host_peak_bytes = 0;
  bool failed = false;

  std::int64_t most() const {
    return *std::max_element(reserved_bytes.begin(), reserved_bytes.end());
  }
};

Cost cost_of(const sim::PipelineSimulation& run) {
  Cost cost{run.step_ns, {}, run.host_peak_bytes, !run.errors.empty()};
  for (const sim::DeviceRun& device : run.devices)
    cost.reserved_bytes.push_back(device.reserved_bytes);
  return cost;
}

// One schedule of the program, cut into stages.
class Scheduled {
 public:
  Scheduled(const PipelineCut& cut, ScheduleKind schedule, const Hardware& hardware,
            const PipelinePlanRequest& request)
      : staged_(cut.staged), schedule_(schedule), hardware_(hardware), request_(request) {}

  Policies everywhere(StagePolicy policy) const { return Policies(staged_.stages.size(), policy); }
  sim::PipelineSimulation run(const Policies& policies, bool check) const {
    sim::PipelineOptions options;
    options.schedule = schedule_;
    options.devices = request_.devices;
    options.microbatches = request_.microbatches;
    options.policies = policies;
    options.portals = request_.portals;
    options.optimizer = request_.optimizer;
    options.alloc_conf = request_.alloc_conf;
    options.check = check;
    return sim::simulate_pipeline(staged_, hardware_, options);
  }
  bool fits(const Cost& cost) const {
    return !cost.failed && cost.most() <= request_.budget_bytes &&
           cost.host_peak_bytes <= hardware_.host_memory_bytes;
  }

  // The greedy search from keep everywhere towards the least memory. Returns the first set of
  // policies that fits; if none fits, the first one with the least memory.
  Policies search() {
    const std::vector<StagePolicy> order = by_cost();
    std::vector<std::size_t> at(staged_.stages.size(), 0);  // by stage, an index into the order
    std::optional<std::pair<std::int64_t, Policies>> least;
    for (;;) {
      Policies policies;
      for (const std::size_t position : at) policies.push_back(order[position]);
      const Cost& cost = of(policies);
      if (fits(cost)) return policies;
      if (!least || cost.most() < least->first) least = {cost.most(), policies};
      const std::optional<std::size_t> stage = next_stage(cost, at, order.size());
      if (!stage) return least->second;
      ++at[*stage];
    }
  }

 private:
  const Cost& of(const Policies& policies) {
    const auto [known, fresh] = known_.try_emplace(policies);
    if (fresh) {
      throw_if(request_.stop);
      known->second = cost_of(run(policies, false));
      if (request_.progress) {
        request_.progress(name(schedule_), known_.size(), 3 * staged_.stages.size() + 3);
      }
    }
    return known->second;
  }

  std::vector<StagePolicy> by_cost() {
    std::vector<StagePolicy> order = {StagePolicy::kKeep, StagePolicy::kOffload,
                                      StagePolicy::kCheckpoint, StagePolicy::kCheckpointOffload};
    if (fits(of(everywhere(StagePolicy::kKeep)))) return order;
    std::stable_sort(order.begin() + 1, order.end(), [this](StagePolicy a, StagePolicy b) {
      return of(everywhere(a)).step_ns < of(everywhere(b)).step_ns;
    });
    return order;
  }

  // Returns a stage of the device that needs most: the one earliest in the order of policies. No
  // value: all its stages have the last policy.
  std::optional<std::size_t> next_stage(const Cost& cost, const std::vector<std::size_t>& at,
                                        std::size_t end) const {
    const auto most = std::max_element(cost.reserved_bytes.begin(), cost.reserved_bytes.end());
    const auto device = static_cast<std::size_t>(most - cost.reserved_bytes.begin());
    std::optional<std::size_t> stage;
    for (std::size_t s = device; s < at.size(); s += request_.devices) {
      if (at[s] + 1 < end && (!stage || at[s] < at[*stage])) stage = s;
    }
    return stage;
  }

  const StagedProgram& staged_;
  const ScheduleKind schedule_;
  const Hardware& hardware_;
  const PipelinePlanRequest& request_;
  std::map<Policies, Cost> known_;
};

// Returns why the schedule is impossible; empty: it is possible.
std::string refusal(ScheduleKind schedule, std::size_t units, const PipelinePlanRequest& request) {
  const bool interleaved = schedule == ScheduleKind::kInterleaved;
  const std::size_t stages = request.devices * (interleaved ? request.interleaved_each : 1);
  const std::string of = std::string(name(schedule)) + ": ";
  if (stages > units) {
    return of + "expected at least " + std::to_string(stages) +
           " units of the program for as many stages, found " + std::to_string(units);
  }
  if (!interleaved) return "";
  if (request.interleaved_each < 2) return of + "expected at least 2 stages on each device";
  if (request.microbatches % request.devices != 0) {
    return of + "expected micro-batches that divide by the devices, found " +
           std::to_string(request.microbatches) + " for " + std::to_string(request.devices);
  }
  return "";
}

// Returns the first unit of each stage. `begins` says which units may begin a stage.
std::vector<std::size_t> first_units(const std::vector<std::int64_t>& costs,
                                     const std::vector<bool>& begins, std::size_t stages) {
  std::vector<std::size_t> firsts;  // the first unit of each piece; a piece is never cut
  std::vector<std::int64_t> pieces;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (begins[i]) {
      firsts.push_back(i);
      pieces.push_back(0);
    }
    pieces.back() += costs[i];
  }
  std::vector<std::size_t> first;
  std::size_t piece = 0;
  for (const std::size_t size : even_stages(pieces, stages)) {
    first.push_back(firsts[piece]);
    piece += size;
  }
  return first;
}

bool may_begin(const Program& program, std::size_t unit) {
  try {
    cut_into_stages(program, {0, unit});
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

// Cuts the program into stages. A unit that cannot begin a stage (it writes in place to what the
// unit before it made, say) stays with that unit. Only the units at proposed cuts are tested for
// this. Throws what cut_into_stages throws.
PipelineCut cut(const Program& program, const std::vector<std::int64_t>& costs, std::size_t devices,
                std::size_t each) {
  const std::size_t stages = devices * each;
  PipelineCut cut;
  cut.stages_each = each;
  std::vector<bool> begins(costs.size(), true);
  std::vector<std::size_t> first;
  const auto another = [&] {  // true if another cut is possible after excluding units
    const std::vector<bool> before = begins;
    for (const std::size_t unit : first) begins[unit] = unit == 0 || may_begin(program, unit);
    const auto left = std::count(begins.begin(), begins.end(), true);
    return begins != before && left >= static_cast<std::ptrdiff_t>(stages);
  };
  for (bool is_cut = false; !is_cut;) {
    first = first_units(costs, begins, stages);
    try {
      cut.staged = cut_into_stages(program, first);
      is_cut = true;
    } catch (const std::invalid_argument&) {
      if (!another()) throw;
    }
  }
  first.push_back(costs.size());
  for (std::size_t s = 0; s < stages; ++s) {
    cut.units.push_back(first[s + 1] - first[s]);
    cut.costs.push_back(std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(first[s]),
                                        costs.begin() + static_cast<std::ptrdiff_t>(first[s + 1]),
                                        std::int64_t{0}));
  }
  return cut;
}

std::vector<std::int64_t> unit_costs(const Program& program, const std::vector<StageUnit>& units,
                                     const Hardware& hardware, const PipelinePlanRequest& request) {
  if (request.balance == StageBalance::kTime) return unit_times(program, units, hardware);
  const std::size_t alive = std::min<std::size_t>(request.microbatches, request.devices);
  return unit_bytes(program, units, request.optimizer, alive);
}

Policies policies_of(const std::string& policy, Scheduled& scheduled) {
  for (std::size_t i = 0; i < std::size(kStagePolicyNames); ++i) {
    const auto each = static_cast<StagePolicy>(i);
    if (policy == name(each)) return scheduled.everywhere(each);
  }
  if (policy == kPipelinePolicies[3]) return scheduled.search();
  throw std::invalid_argument("unknown pipeline policy '" + policy + "'");
}

PipelineRow row_of(const std::string& policy, std::size_t cut, std::size_t each,
                   ScheduleKind schedule, Scheduled& scheduled,
                   const PipelinePlanRequest& request) {
  PipelineRow row;
  row.schedule = schedule;
  row.policy = policy;
  row.cut = cut;
  row.stage_policies = policies_of(policy, scheduled);
  row.closed_permille = bubble_permille(schedule, request.devices, each, request.microbatches);
  const Schedule actions = make_schedule(schedule, request.devices, each, request.microbatches);
  for (const auto& of_device : actions.devices) row.alive.push_back(alive_max(of_device));
  throw_if(request.stop);
  row.simulation = scheduled.run(row.stage_policies, request.check);
  row.fits = scheduled.fits(cost_of(row.simulation));
  return row;
}

}  // namespace

PipelinePlan plan_pipeline(const Program& given, const Hardware& hardware,
                           const PipelinePlanRequest& request) {
  PipelinePlan plan;
  const Program program = with_main_step(given);
  const std::vector<StageUnit> units = stage_units(program);
  const std::vector<std::int64_t> costs = unit_costs(program, units, hardware, request);
  std::vector<ScheduleKind> schedules = request.schedules;
  if (schedules.empty()) {
    schedules = {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                 ScheduleKind::kInterleaved};
  }
  for (const ScheduleKind schedule : schedules) {
    const std::string reason = refusal(schedule, units.size(), request);
    if (reason.empty()) continue;
    if (!request.schedules.empty() || schedule != ScheduleKind::kInterleaved) {
      throw std::invalid_argument(reason);
    }
    plan.left_out.push_back(reason);
  }
  std::map<std::size_t, std::size_t> cuts;  // by stages per device
  for (const ScheduleKind schedule : schedules) {
    if (!refusal(schedule, units.size(), request).empty()) continue;
    const bool interleaved = schedule == ScheduleKind::kInterleaved;
    const std::size_t each = interleaved ? request.interleaved_each : 1;
    if (!cuts.contains(each)) {
      try {
        plan.cuts.push_back(cut(program, costs, request.devices, each));
      } catch (const std::invalid_argument& error) {
        if (!interleaved || !request.schedules.empty()) throw;
        plan.left_out.push_back(std::string(name(schedule)) + ": " + error.what());
        continue;
      }
      cuts.emplace(each, plan.cuts.size() - 1);
    }
    const std::size_t number = cuts.at(each);
    Scheduled scheduled(plan.cuts[number], schedule, hardware, request);
    try {
      for (const std::string& policy : request.policies) {
        plan.rows.push_back(row_of(policy, number, each, schedule, scheduled, request));
      }
    } catch (const Stopped&) {
      plan.stopped = true;
      break;
    }
  }
  return plan;
}

const PipelineRow* best_row(const PipelinePlan& plan) {
  const auto key = [](const PipelineRow& row) {
    const sim::Time time = row.simulation.step_ns;
    const std::int64_t bytes = row.simulation.reserved_bytes();
    return std::tuple(!row.fits, row.fits ? time : bytes, row.fits ? bytes : time);
  };
  const PipelineRow* best = nullptr;
  for (const PipelineRow& row : plan.rows) {
    if (row.simulation.is_safe() && (!best || key(row) < key(*best))) best = &row;
  }
  return best;
}

StagedPlan to_plan(const Program& program, const Hardware& hardware,
                   const PipelinePlanRequest& request, const PipelinePlan& plan,
                   const PipelineRow& row) {
  StagedPlan result;
  result.program = program.name;
  result.program_digest = digest(program);
  result.hardware = hardware.name;
  result.policy = row.policy;
  result.schedule = row.schedule;
  result.devices = request.devices;
  result.microbatches = static_cast<std::int64_t>(request.microbatches);
  result.options = plan_options(sim::pipeline_offload_options());
  result.predicted = {row.simulation.peak_bytes(), row.simulation.reserved_bytes(),
                      row.simulation.host_peak_bytes, row.simulation.step_ns};
  const PipelineCut& cut = plan.cuts[row.cut];
  for (std::size_t s = 0; s < cut.staged.stages.size(); ++s) {
    const Stage& stage = cut.staged.stages[s];
    result.stages.push_back({static_cast<std::int64_t>(cut.units[s]), stage.first_unit,
                             stage.last_unit, row.stage_policies[s]});
  }
  return result;
}

}  // namespace ferry::plan
