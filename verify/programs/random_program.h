// Random training steps. A recipe (recipe.h) gives a program; shrinking changes the recipe.
//
// Layers save inputs, outputs, views, one tensor twice, and views of large storages. They write in
// place, return a view of a saved tensor as a gradient, run on a side stream, are excluded from
// hooks, run a nested backward in their backward, or have branches that nothing differentiates. A
// step has micro-batches in three orders, retain_graph, derivatives up to the third order, a
// forward or a backward that fails, and parameters that move.
//
// In a third of the recipes, layers also lie in checkpointed segments. These nest, have both
// variants and all options, and may run on their own streams. Their layers draw random numbers,
// change the ambient state, and run a backward within forward.
//
// PyTorch runs every such program without hooks, and gives the same results if all segments are
// plain calls. So a segment that draws random numbers preserves their state. The reentrant variant
// is used only if its input has a gradient and gradients are summed in the same order.
// check_program accepts every program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/program.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

// Which tensors a failing step may write (StepFailure::kSavedWritten). kOfKept: only tensors that
// no checkpoint recomputes, so that there is an error whatever is recomputed. kOfAny: also the
// input and the results of a segment.
enum class LateWrites : std::uint8_t { kOfKept, kOfAny };
Program make_program(const Recipe& recipe, LateWrites writes = LateWrites::kOfKept);

// Returns the name of the i-th op in a body that computes derivatives of this order.
std::string gradient_op(int order, std::size_t i);

}  // namespace ferry::verify
