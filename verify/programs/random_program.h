// Random training steps: what a recipe makes. Recipes shrink; programs follow.
//
// Layers save inputs, outputs, views, one tensor twice, views of large storages; write in place;
// return a view of a saved tensor as a gradient; run on a side stream; are excluded; run a nested
// backward in their backward; have branches that nobody differentiates. Around them: micro-batches
// in three orders, retain_graph, derivatives to third order, a forward or a backward that fails,
// parameters that move.
//
// In a third of the recipes layers also lie in checkpointed segments, which nest, of both variants
// and with all options, on streams of their own; draw random numbers; change the ambient state; and
// differentiate something of forward within forward.
//
// Every program is one that PyTorch would run without hooks, and one that says the same with all
// its segments as plain calls. So a segment that draws random numbers
// preserves their state, and the reentrant variant is drawn where its input has a gradient and sums
// of gradients are formed in the same order. check_program accepts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/program.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

// Which tensors a step may write that fails by such a write (kSavedWritten). Of none that is
// recomputed: then there is an error whatever is recomputed. Or any: a segment's input and results,
// too.
enum class LateWrites : std::uint8_t { kOfKept, kOfAny };
Program make_program(const Recipe& recipe, LateWrites writes = LateWrites::kOfKept);

// Names the i-th op of a body that computes derivatives of that order.
std::string gradient_op(int order, std::size_t i);

}  // namespace ferry::verify
