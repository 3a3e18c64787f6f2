#include "verify/oracles/cuts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace ferry::verify {
namespace {

// Returns the largest cost of a stage, and the number of layers of that stage. Stages with equal
// costs are compared by their layers.
std::pair<std::int64_t, std::size_t> most_of(std::span<const std::int64_t> costs,
                                             const std::vector<std::size_t>& cut) {
  std::pair<std::int64_t, std::size_t> most = {0, 0};
  std::size_t at = 0;
  for (const std::size_t size : cut) {
    const auto stage = costs.subspan(at, size);
    most = std::max(most, {std::accumulate(stage.begin(), stage.end(), std::int64_t{0}), size});
    at += size;
  }
  return most;
}

}  // namespace

std::vector<std::size_t> best_cut(std::span<const std::int64_t> costs, std::size_t stages) {
  std::vector<std::size_t> best;
  // Bit i of a mask means that a stage ends after layer i.
  for (std::uint64_t mask = 0; mask < std::uint64_t{1} << (costs.size() - 1); ++mask) {
    std::vector<std::size_t> cut = {1};
    for (std::size_t i = 0; i + 1 < costs.size(); ++i) {
      if ((mask >> i & 1) != 0) {
        cut.push_back(1);
      } else {
        ++cut.back();
      }
    }
    if (cut.size() != stages) continue;
    const auto most = most_of(costs, cut);
    const auto least = most_of(costs, best);
    if (best.empty() || most < least || (most == least && cut > best)) best = std::move(cut);
  }
  return best;
}

std::vector<std::pair<std::size_t, std::size_t>> chain_checkpoints(std::size_t functions,
                                                                   std::size_t segments) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  const std::size_t each = functions / segments;
  // A border is where the next segment begins. The last segment takes the rest.
  for (std::size_t border = each; all.size() + 1 < segments; border += each) {
    all.emplace_back(border - each, border);
  }
  return all;
}

std::vector<std::string> unmatched(const std::vector<DeclaredSkip>& declared) {
  std::map<std::string, std::vector<DeclaredSkip>> by_skip;
  for (const DeclaredSkip& each : declared) by_skip[each.skip].push_back(each);
  std::vector<std::string> found;
  for (const auto& [skip, all] : by_skip) {
    const bool two = all.size() == 2 && all[0].pops != all[1].pops;
    const DeclaredSkip& stash = all[two && all[0].pops ? 1 : 0];
    const DeclaredSkip& pop = all[two && all[0].pops ? 0 : all.size() - 1];
    if (!two || stash.layer >= pop.layer) found.push_back(skip);
  }
  return found;
}

}  // namespace ferry::verify
