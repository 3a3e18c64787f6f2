#include "verify/trials/chosen_checkpoints.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "shared/checkpoint/selective.h"
#include "shared/checkpoint/sequential.h"
#include "verify/oracles/cuts.h"
#include "verify/oracles/recomputes.h"

namespace ferry::verify {
namespace {

// Returns the checkpoints of the trial's chain, as the core cuts it.
std::vector<ChainSegment> cut_chain(const Recipe& recipe, std::size_t segments,
                                    const Rules& rules) {
  std::vector<ChainSegment> checkpoints;
  for (const SequentialSegment& each :
       sequential_segments(static_cast<std::int64_t>(recipe.layers.size()),
                           static_cast<std::int64_t>(segments), rules)) {
    if (!each.checkpoint) continue;
    checkpoints.push_back(
        {static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.end)});
  }
  return checkpoints;
}

}  // namespace

Trial in_chain(const Trial& trial, const Rules& rules, Recipe& right) {
  Trial cut = trial;
  right = trial.recipe;
  const std::size_t layers = trial.recipe.layers.size();
  if (trial.recipe.sequence == 0 || layers == 0) return cut;
  const std::size_t segments = std::min(static_cast<std::size_t>(trial.recipe.sequence), layers);
  cut.recipe = in_segments(trial.recipe, cut_chain(trial.recipe, segments, rules));
  std::vector<ChainSegment> checkpoints;
  for (const auto& [begin, end] : chain_checkpoints(layers, segments)) {
    checkpoints.push_back({begin, end});
  }
  right = in_segments(trial.recipe, checkpoints);
  return cut;
}

std::shared_ptr<const sim::OpPolicies> policies_of(const Trial& trial, const Program& program,
                                                   bool known) {
  if (!is_selective(trial)) return nullptr;
  std::set<std::string> written;
  if (!known) written = written_later(program);
  auto policies = std::make_shared<sim::OpPolicies>();
  for (std::size_t i = 0; i < kSelectiveOps.size(); ++i) {
    const std::string op(kSelectiveOps[i]);
    if (!written.contains(op)) {
      policies->emplace(op, static_cast<CheckpointPolicy>(trial.policies[i]));
    }
  }
  return policies;
}

namespace {

// PyTorch's policies by number, in pairs: save, recompute, offload.
std::set<std::string> ops_of(const sim::SimulationOptions& options,
                             std::initializer_list<int> pairs) {
  std::set<std::string> ops;
  if (!options.selective) return ops;
  for (const auto& [op, policy] : *options.selective) {
    if (std::count(pairs.begin(), pairs.end(), static_cast<int>(policy) / 2) > 0) ops.insert(op);
  }
  return ops;
}

}  // namespace

std::set<std::string> kept_ops(const sim::SimulationOptions& options) {
  return ops_of(options, {0, 2});
}
std::set<std::string> moved_ops(const sim::SimulationOptions& options) {
  return ops_of(options, {2});
}

}  // namespace ferry::verify
