// A what-if of the planner: the same step with its loss computed in slices of its rows.
//
// A language model's loss holds several tensors of rows x classes at once: the logits, a copy in
// float32, their log-softmax and its gradient. A fused or chunked loss computes some rows after the
// other, and holds these tensors for one slice alone. The model here: every tensor of that shape
// has `slices` times fewer rows, and each operator takes as long as before. Not modelled: what a
// fused kernel saves in time, and the sum of the head's gradient that it keeps meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/program.h"

namespace ferry::plan {

// The largest log-softmax of a program.
struct Loss {
  std::string op;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

// None: the program has no log-softmax of rows that lie one after the other.
std::optional<Loss> loss_of(const Program& program);

// None: it has no such loss, or a parameter that looks like the logits.
std::optional<Program> with_sliced_loss(const Program& program, std::int64_t slices);

}  // namespace ferry::plan
