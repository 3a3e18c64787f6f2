// A GPT as a pipeline, with the stages of the options, or with those of a plan of `ferry plan
// --stages`.
//
// The units of a captured GPT are the layers of its chain: everything before the first block, each
// block, and everything after the last. So a plan says how many layers each stage has.
#pragma once

#include "ferry/pipe.h"
#include "real/train/gpt.h"
#include "real/train/options.h"

namespace ferry::real::train {

// Throws InputError if the plan cannot be read, or is not for this model or these options.
Pipe make_pipe(const Options& options, const Gpt& model);

}  // namespace ferry::real::train
