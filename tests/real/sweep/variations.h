// The forms in which a call's tensors are tried: dtypes, and layouts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/real/sweep/step.h"

namespace ferry::sweep {

struct Variation {
  std::string name;
  // None where this tensor cannot have the form; it is then as it was recorded.
  std::function<std::optional<Leaf>(const at::Tensor&)> leaf;
  // Elements share bytes: nothing for an argument that is written. (Some kernels do not refuse it.)
  bool overlaps = false;
  // Not the shape that the call was made for.
  bool reshapes = false;
};

// The first is as recorded. The rest: where `all`.
std::vector<Variation> variations(bool all);

// None where no tensor of the call can have the form.
std::optional<Case> varied(const Call& call, const Variation& variation);

}  // namespace ferry::sweep
