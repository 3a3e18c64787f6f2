// Rewrites a program as if its loss were computed in slices of rows, to see how much memory a fused
// or chunked loss would save (ways.h).
//
// The loss of a language model holds several tensors of rows x classes at once: the logits, a copy
// in float32, their log-softmax and its gradient. A chunked loss computes some rows at a time, and
// holds these tensors for one slice only. In the rewritten program every tensor of that shape has
// `slices` times fewer rows, and each operator takes as long as before. Not modelled: the time that
// a fused kernel saves, and the sum of the head's gradient that it keeps meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/program.h"

namespace ferry::plan {

// The largest log-softmax of a program, by elements.
struct Loss {
  std::string op;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

// Returns no value if the program has no log-softmax over contiguous rows.
std::optional<Loss> loss_of(const Program& program);

// Returns no value if there is no such loss, or if a parameter has the shape of the logits.
std::optional<Program> with_sliced_loss(const Program& program, std::int64_t slices);

}  // namespace ferry::plan
