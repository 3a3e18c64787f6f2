// Splits consecutive layers into stages so that the most expensive stage is as cheap as possible.
//
// torchgpipe solves the same problem (balance/blockpartition.py, after Bárány and Grinberg, "Block
// partitions of sequences", 2015) by moving items between neighbours until the parts are even. This
// code does a binary search for the smallest possible maximum, which is what a pipeline waits for;
// a greedy fill decides if a limit is possible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/pipeline/pipeline_rules.h"

namespace ferry {

// Returns the number of items in each part. Among equally good answers it takes one whose largest
// part has few items (items without cost count too); in it the first parts are as full as possible,
// as long as each later part gets an item.
//
// Throws std::invalid_argument if there are no parts, if there are more parts than items, or if a
// cost is negative.
inline std::vector<std::size_t> balance(std::span<const std::int64_t> costs, std::size_t parts,
                                        const PipelineRules& rules = Rules()) {
  if (parts == 0) throw std::invalid_argument("expected at least one part to balance");
  if (parts > costs.size()) {
    throw std::invalid_argument("expected an item for each part: " + std::to_string(costs.size()) +
                                " items cannot be " + std::to_string(parts) + " parts");
  }
  // The number of items decides only between equal costs.
  __extension__ typedef __int128 Wide;
  std::vector<Wide> weights;
  for (const std::int64_t cost : costs) {
    if (cost < 0) throw std::invalid_argument("expected costs of at least 0");
    const Wide counted = rules.balances_costs() ? Wide{cost} : Wide{0};
    weights.push_back(counted * static_cast<Wide>(costs.size() + 1) + 1);
  }
  const auto filled = [&](Wide limit) {
    std::vector<std::size_t> sizes;
    std::size_t at = 0;
    while (sizes.size() < parts) {
      const std::size_t last = costs.size() - (parts - sizes.size() - 1);
      const std::size_t begin = at;
      for (Wide left = limit; at < last && weights[at] <= left; ++at) left -= weights[at];
      sizes.push_back(at - begin);
    }
    if (at < costs.size()) sizes.clear();  // the limit is too low
    return sizes;
  };
  Wide low = 0;
  Wide high = 0;
  for (const Wide weight : weights) {
    low = std::max(low, weight);  // each part gets an item
    high += weight;
  }
  while (low < high) {
    const Wide middle = low + (high - low) / 2;
    if (filled(middle).empty()) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return filled(low);
}

}  // namespace ferry
