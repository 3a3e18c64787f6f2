// How a pipeline's stages and a chain's segments must be cut, found by trying every cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::verify {

// The number of layers of each stage. Of all cuts it is the one whose most expensive stage costs
// least; of these, the one whose most expensive stages have the fewest layers; of these, the one
// whose first stages have the most. There are few layers.
std::vector<std::size_t> best_cut(std::span<const std::int64_t> costs, std::size_t stages);

// The segments of a chain of so many functions that are checkpoints, as pairs of first function and
// the one behind the last: as many in each, and none behind the last border.
std::vector<std::pair<std::size_t, std::size_t>> chain_checkpoints(std::size_t functions,
                                                                   std::size_t segments);

// A declaration of a layer, of a skip tensor that it stashes or pops.
struct DeclaredSkip {
  std::size_t layer = 0;
  bool pops = false;
  std::string skip;
};
// The skip tensors that are not stashed by one layer and popped by one layer after it.
std::vector<std::string> unmatched(const std::vector<DeclaredSkip>& declared);

}  // namespace ferry::verify
