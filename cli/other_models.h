// Other trainings of a model that `ferry plan` was asked about by its name: with adapters, with
// shorter sequences, with a smaller batch. Each one is captured and planned, to tell somebody whose
// training does not fit what would.
#pragma once

#include <string>
#include <vector>

#include "cli/policies.h"
#include "plan/ways.h"

namespace ferry::cli {

struct OtherModel {
  std::string words;      // the options that the user types
  plan::Way way;          // what its plan needs
  PolicyRequest request;  // the training
};

// Returns the trainings that fit, and those with adapters even if they do not. Empty for a subject
// that is no configuration of transformers. Sequences and batches are halved until one fits; they
// are tried only if `smaller_helps`. What cannot be captured is left out. Throws Ended if the
// user stopped the search.
std::vector<OtherModel> models_that_fit(const PolicyArguments& arguments,
                                        const PolicyRequest& request, bool smaller_helps);

}  // namespace ferry::cli
