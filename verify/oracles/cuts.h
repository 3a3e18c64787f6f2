// Says how the stages of a pipeline and the segments of a chain must be cut, and which declarations
// of skip tensors are wrong. best_cut tries every cut, so it is for few layers; the other functions
// compute their answer directly.
//
// It shares no code with the core, so that trials can compare the core with it (try_pipeline.h,
// chosen_checkpoints.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::verify {

// Returns the number of layers of each stage. The best cut has the smallest cost of its most
// expensive stage. Among equal cuts, the most expensive stages have the fewest layers, and then the
// first stages have the most. Tries every cut, so it is for few layers.
std::vector<std::size_t> best_cut(std::span<const std::int64_t> costs, std::size_t stages);

// Returns the checkpointed segments of a chain of functions, each as its first function and the one
// after its last. All have the same length. The last segment, which takes the rest, is no
// checkpoint.
std::vector<std::pair<std::size_t, std::size_t>> chain_checkpoints(std::size_t functions,
                                                                   std::size_t segments);

// A layer declares that it stashes or pops a skip tensor.
struct DeclaredSkip {
  std::size_t layer = 0;
  bool pops = false;
  std::string skip;
};
// Returns the skip tensors that do not have exactly one stash and one later pop.
std::vector<std::string> unmatched(const std::vector<DeclaredSkip>& declared);

}  // namespace ferry::verify
