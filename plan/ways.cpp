#include "plan/ways.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/sliced_loss.h"
#include "sim/run/training/run_parts.h"

namespace ferry::plan {
namespace {

// A changed training, which is planned instead of the requested one.
struct Other {
  Program program;
  PlanRequest request;
};

// Applies the change. Returns false if it does not apply to this training.
bool take(WayKind kind, Other& other) {
  sim::Training& training = other.request.training;
  const bool has_optimizer = training.optimizer != sim::Optimizer::kNoOptimizer;
  switch (kind) {
    case WayKind::kPolicy:
      return true;
    case WayKind::kHostState:
      if (sim::optimizer_tensors(training.optimizer) == 0 ||
          training.state != sim::OptimizerState::kDevice) {
        return false;
      }
      training.state = sim::OptimizerState::kHost;
      return true;
    case WayKind::kInBackward:
      if (!has_optimizer || training.state == sim::OptimizerState::kHostInBackward ||
          training.clip_grad_norm || training.grad_scaler) {
        return false;
      }
      training.state = sim::OptimizerState::kHostInBackward;
      return true;
    case WayKind::kFused:
      if (!has_optimizer || training.implementation == sim::OptimizerImplementation::kFused) {
        return false;
      }
      training.implementation = sim::OptimizerImplementation::kFused;
      return true;
    case WayKind::kSlicedLoss:
      if (auto sliced = with_sliced_loss(other.program, kLossSlices)) {
        other.program = std::move(*sliced);
        return true;
      }
      return false;
    case WayKind::kExpandable:
      if (!to_string(other.request.alloc_conf).empty()) return false;
      other.request.alloc_conf.expandable_segments = true;
      return other.request.judged == Judged::kReserved;
    case WayKind::kNoState:
      if (!has_optimizer || training.optimizer == sim::Optimizer::kSgd) return false;
      training.optimizer = sim::Optimizer::kSgd;
      return true;
  }
  return false;
}

bool needs_less(const Way& a, const Way& b) {
  return std::pair(!a.fits, a.least_bytes) < std::pair(!b.fits, b.least_bytes);
}

bool is_faster(const Way& a, const Way& b) {
  return std::pair(!a.fits, a.step_ns) < std::pair(!b.fits, b.step_ns);
}

// Plans the changed training and returns its best policy; no value: nothing runs, or the search was
// stopped.
std::optional<Way> best_of(WayKind kind, const Other& other, const Hardware& hardware,
                           bool (*is_better)(const Way&, const Way&)) {
  std::optional<Way> found;
  const PlanResult result = plan(other.program, hardware, other.request);
  if (result.stopped) return std::nullopt;
  for (const PolicyRow& row : result.rows) {
    if (row.least_bytes == 0 || !row.simulation.errors.empty()) continue;
    const Way way{kind, find_policy(row.policy).value(), row.least_bytes, row.simulation.step_ns,
                  row.fits};
    if (!found || is_better(way, *found)) found = way;
  }
  return found;
}

// Returns the request with only these policies, and `for_segments` if there are segments. They need
// no search over spans, so they are planned quickly.
PlanRequest with_policies(const Program& program, const PlanRequest& request,
                          std::vector<Policy> policies, Policy for_segments) {
  PlanRequest plain;
  plain.budget_bytes = request.budget_bytes;
  plain.judged = request.judged;
  plain.training = request.training;
  plain.workspace_bytes = request.workspace_bytes;
  plain.alloc_conf = request.alloc_conf;
  plain.check = false;
  plain.spans = request.spans;
  plain.modules = request.modules;
  plain.stop = request.stop;
  plain.policies = std::move(policies);
  if (has_segments(program, request.modules)) plain.policies.push_back(for_segments);
  return plain;
}

// Returns the request with only the policies that need the least memory.
PlanRequest plain_request(const Program& program, const PlanRequest& request) {
  return with_policies(program, request, {Policy::kOffload}, Policy::kCheckpointOffload);
}

// Returns the time of the fastest row that fits on the card.
std::optional<sim::Time> fastest_on(const Hardware& card, const Program& program,
                                    PlanRequest request) {
  request.budget_bytes = card.usable_bytes();
  const PlanResult result = plan(program, card, request);
  const PolicyRow* row = best_row(result);
  if (!row || !row->is_answer()) return std::nullopt;
  return row->simulation.step_ns;
}

}  // namespace

bool fits_on(const Hardware& card, const Program& program, const PlanRequest& request) {
  return fastest_on(card, program, plain_request(program, request)).has_value();
}

std::optional<sim::Time> keeps_on(const Hardware& card, const Program& program,
                                  const PlanRequest& request) {
  PlanRequest keep = plain_request(program, request);
  keep.policies = {Policy::kKeep};
  return fastest_on(card, program, std::move(keep));
}

std::optional<Way> least_way(const Program& program, const Hardware& hardware,
                             const PlanRequest& request) {
  Other other{program, plain_request(program, request)};
  std::optional<Way> found = best_of(WayKind::kPolicy, other, hardware, needs_less);
  const std::int64_t budget = request.budget_bytes;
  if (!found || found->fits || found->least_bytes > budget + budget / 4) return found;
  other.request.policies = {Policy::kBest};
  const std::optional<Way> best = best_of(WayKind::kPolicy, other, hardware, needs_less);
  return best && needs_less(*best, *found) ? best : found;
}

Ways ways_to_fit(const Program& program, const Hardware& hardware, const PlanRequest& request,
                 std::int64_t least_bytes) {
  Other taken{program, plain_request(program, request)};
  const auto gives = [&](const std::optional<Way>& way, std::int64_t before) {
    const std::int64_t missing = before - request.budget_bytes;
    // If the device lacks nothing, the host's memory is too small, and only a fit helps.
    return way && (way->fits || (missing > 0 && (before - way->least_bytes) * 20 >= missing));
  };
  const auto on_top = [&](WayKind kind) -> std::optional<Way> {
    Other other = taken;
    return take(kind, other) ? best_of(kind, other, hardware, needs_less) : std::nullopt;
  };
  Ways ways;
  const std::optional<Way> no_state = on_top(WayKind::kNoState);
  if (gives(no_state, least_bytes)) ways.no_state = no_state;
  const std::optional<Way> policy = on_top(WayKind::kPolicy);
  std::int64_t needs = least_bytes;
  const auto add = [&](const Way& way) {
    take(way.kind, taken);
    needs = std::min(needs, way.least_bytes);
    ways.each.push_back(way);
    return way.fits;
  };
  if (gives(policy, needs) && add(*policy)) return ways;
  std::vector<WayKind> left = {WayKind::kHostState, WayKind::kInBackward, WayKind::kFused,
                               WayKind::kSlicedLoss, WayKind::kExpandable};
  while (!left.empty()) {
    std::optional<Way> best;
    for (const WayKind kind : left) {
      const std::optional<Way> way = on_top(kind);
      if (way && (!best || needs_less(*way, *best))) best = way;
    }
    if (!gives(best, needs) || add(*best)) break;
    std::erase(left, best->kind);
  }
  return ways;
}

std::vector<Way> ways_to_speed(const Program& program, const Hardware& hardware,
                               const PlanRequest& request, sim::Time step_ns) {
  std::vector<Way> found;
  for (const WayKind kind : {WayKind::kFused, WayKind::kSlicedLoss, WayKind::kExpandable}) {
    Other other{program, with_policies(program, request, {Policy::kKeep, Policy::kOffload},
                                       Policy::kCheckpoint)};
    if (!take(kind, other)) continue;
    const std::optional<Way> way = best_of(kind, other, hardware, is_faster);
    if (way && way->fits && way->step_ns < step_ns - step_ns / 50) found.push_back(*way);
  }
  std::stable_sort(found.begin(), found.end(), is_faster);
  return found;
}

}  // namespace ferry::plan
