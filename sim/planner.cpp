#include "sim/planner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "formats/program_file.h"

namespace ferry::sim {
namespace {

// How finely a search divides the bytes that could move, and the windows that it tries.
constexpr std::int64_t kShares = 48;
constexpr std::int64_t kWindows = 32;
constexpr std::array<std::int64_t, 3> kWindowParts = {64, 16, 4};  // 1/64, 1/16, 1/4 of the bytes
constexpr std::array<std::int64_t, 4> kSpreads = {0, 24, 36,
                                                  48};  // shares; 0: no wider than needed
constexpr std::int64_t kLeastWindow = std::int64_t{1} << 20;

// The storages that a selection may move, in the order in which they are packed.
struct Movable {
  std::vector<std::int64_t> bytes;   // of each group, 0 for those that may not move
  std::vector<std::uint64_t> order;  // groups
  std::int64_t total = 0;
};

Movable movable(const std::vector<PackedTensor>& packs, std::int64_t bytes_min) {
  Movable result;
  for (const PackedTensor& pack : packs) {
    if (pack.group < result.bytes.size()) continue;
    const bool moves = !pack.global && pack.storage_bytes >= bytes_min;
    result.bytes.push_back(moves ? pack.storage_bytes : 0);
    if (!moves) continue;
    result.order.push_back(pack.group);
    result.total += pack.storage_bytes;
  }
  return result;
}

// Moves `share` of the bytes, in kShares parts, evenly from the first `spread` of them: what is
// packed first is needed back last, and an even load keeps both lanes busy without a queue. What
// the window still holds when backward begins would move in vain, and does not.
std::vector<bool> select_groups(const std::vector<PackedTensor>& packs, const Movable& all,
                                std::int64_t share, std::int64_t spread,
                                std::int64_t window_bytes) {
  std::vector<bool> moves(all.bytes.size(), false);
  std::int64_t seen = 0;
  std::int64_t moved = 0;
  for (const std::uint64_t group : all.order) {
    if (seen >= all.total / kShares * spread) break;
    seen += all.bytes[group];
    if (moved >= seen / spread * share || seen > all.total - window_bytes) continue;
    moves[group] = true;
    moved += all.bytes[group];
  }
  std::vector<bool> offload;
  offload.reserve(packs.size());
  for (const PackedTensor& pack : packs) offload.push_back(moves[pack.group]);
  return offload;
}

std::vector<CoreOptions> prefetch_candidates(const Movable& all) {
  std::vector<CoreOptions> candidates;
  for (std::int64_t i = 1; i <= kWindows; ++i) {
    CoreOptions options;
    options.window_bytes = std::max(all.total / kWindows * i, kLeastWindow);
    candidates.push_back(std::move(options));
  }
  return candidates;
}

std::vector<CoreOptions> budget_candidates(const std::vector<PackedTensor>& packs,
                                           const Movable& all) {
  std::vector<CoreOptions> candidates;
  CoreOptions none;
  none.offload.assign(packs.size(), false);
  candidates.push_back(none);
  for (std::int64_t share = 1; share <= kShares; ++share) {
    for (const std::int64_t spread : kSpreads) {
      if (spread != 0 && spread <= share) continue;
      for (const std::int64_t part : kWindowParts) {
        CoreOptions options;
        options.window_bytes = std::max(all.total / part, kLeastWindow);
        options.offload =
            select_groups(packs, all, share, std::max(spread, share), options.window_bytes);
        options.window_packs = static_cast<std::int64_t>(packs.size()) / part + 1;
        options.prefetch_bytes = options.window_bytes;
        options.hold_bytes = options.window_bytes;
        candidates.push_back(options);
      }
    }
  }
  return candidates;
}

// Simulates every candidate, unchecked, on all processors. The results do not depend on how many.
std::vector<Simulation> try_all(const Program& program, const Hardware& hardware,
                                const PlanRequest& request, std::string_view what,
                                const std::vector<CoreOptions>& candidates) {
  std::vector<Simulation> results(candidates.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&](bool reports) {
    try {
      for (std::size_t i = next++; i < candidates.size(); i = next++) {
        SimulationOptions options;
        options.offload = candidates[i];
        options.optimizer = request.optimizer;
        options.check = false;
        results[i] = simulate(program, hardware, options);
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

}  // namespace

PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  PlanResult result;
  result.packs = survey(program, hardware);
  const Movable all = movable(result.packs, CoreOptions().bytes_min);
  SimulationOptions keep;
  keep.optimizer = request.optimizer;
  keep.check = false;
  result.keep_ns = simulate(program, hardware, keep).step_ns;
  for (const std::string& policy : request.policies) {
    PolicyRow row{policy, std::nullopt, {}, false};
    if (policy == "offload-all") {
      row.options = trl_options();
    } else if (policy == "prefetch") {
      const auto candidates = prefetch_candidates(all);
      row.options =
          candidates[pick_window(try_all(program, hardware, request, policy, candidates))];
    } else if (policy == "budget") {
      const auto candidates = budget_candidates(result.packs, all);
      row.options = candidates[pick_fastest(try_all(program, hardware, request, policy, candidates),
                                            hardware, request)];
    } else if (policy != "keep") {
      throw std::invalid_argument("no policy is called '" + policy +
                                  "': expected keep, offload-all, prefetch or budget");
    }
    SimulationOptions options;
    options.offload = row.options;
    options.optimizer = request.optimizer;
    options.check = request.check;
    row.simulation = simulate(program, hardware, options);
    row.fits = fits(row.simulation, hardware, request);
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::int64_t slowdown_permille(Time step_ns, Time keep_ns) {
  if (keep_ns == 0) return 1000;
  return (step_ns * 1000 + keep_ns - 1) / keep_ns;
}

namespace {}  // namespace

Plan to_plan(const Program& program, const Hardware& hardware, const PlanResult& result,
             const PolicyRow& row) {
  Plan plan;
  plan.program = program.name;
  plan.program_digest = digest(program);
  plan.hardware = hardware.name;
  plan.policy = row.policy;
  plan.predicted = {row.simulation.device_peak_bytes, row.simulation.device_reserved_bytes,
                    row.simulation.host_peak_bytes, row.simulation.step_ns};
  if (row.options) plan.options = plan_options(*row.options);
  for (std::size_t i = 0; i < result.packs.size(); ++i) {
    const PackedTensor& pack = result.packs[i];
    const bool chosen = row.options && !pack.exempt &&
                        pack.storage_bytes >= row.options->bytes_min &&
                        (row.options->offload.empty() || row.options->offload[i]);
    Layout layout = pack.layout;
    layout.offset = 0;
    plan.entries.push_back(
        {i, pack.node, layout, pack.group, chosen ? PlanChoice::kOffload : PlanChoice::kKeep});
  }
  return plan;
}

}  // namespace ferry::sim
