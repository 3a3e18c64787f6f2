#include "plan/ways.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/sliced_loss.h"

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

bool is_better(const Way& a, const Way& b) {
  return std::pair(!a.fits, a.least_bytes) < std::pair(!b.fits, b.least_bytes);
}

// Plans the changed training and returns the policy that needs the least memory; no value: nothing
// runs, or the search was stopped.
std::optional<Way> least(WayKind kind, const Other& other, const Hardware& hardware) {
  std::optional<Way> found;
  const PlanResult result = plan(other.program, hardware, other.request);
  if (result.stopped) return std::nullopt;
  for (const PolicyRow& row : result.rows) {
    if (row.least_bytes == 0 || !row.simulation.errors.empty()) continue;
    const Way way{kind, find_policy(row.policy).value(), row.least_bytes, row.fits};
    if (!found || is_better(way, *found)) found = way;
  }
  return found;
}

// Returns the request with only the policies that need the least memory. They need no search over
// spans, so they are planned quickly.
PlanRequest plain_request(const Program& program, const PlanRequest& request) {
  PlanRequest plain;
  plain.budget_bytes = request.budget_bytes;
  plain.judged = request.judged;
  plain.training = request.training;
  plain.workspace_bytes = request.workspace_bytes;
  plain.alloc_conf = request.alloc_conf;
  plain.check = false;
  plain.modules = request.modules;
  plain.stop = request.stop;
  plain.policies = {Policy::kOffload};
  if (has_segments(program, request.modules)) plain.policies.push_back(Policy::kCheckpointOffload);
  return plain;
}

}  // namespace

bool fits_on(const Hardware& card, const Program& program, const PlanRequest& request) {
  PlanRequest plain = plain_request(program, request);
  plain.budget_bytes = card.usable_bytes();
  const PlanResult result = plan(program, card, plain);
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [](const PolicyRow& row) { return row.is_answer(); });
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
    return take(kind, other) ? least(kind, other, hardware) : std::nullopt;
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
  std::vector<WayKind> left = {WayKind::kFused, WayKind::kSlicedLoss, WayKind::kExpandable};
  while (!left.empty()) {
    std::optional<Way> best;
    for (const WayKind kind : left) {
      const std::optional<Way> way = on_top(kind);
      if (way && (!best || is_better(*way, *best))) best = way;
    }
    if (!gives(best, needs) || add(*best)) break;
    std::erase(left, best->kind);
  }
  return ways;
}

}  // namespace ferry::plan
