// What nobody sets: options are as they are documented (PyTorch's and TRL's where they are theirs),
// a plan that is open or closed says so, and every rule holds but the one that is broken.
#pragma once

#include <optional>

#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_defaults(const CoreOptions& ours = {},
                                      const CoreOptions& trl = trl_options(),
                                      const CoreCheckpointOptions& checkpoint = {});

}  // namespace ferry::verify
