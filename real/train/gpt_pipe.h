// A GPT in the stages of a pipeline: those that the options ask for, or a plan of
// `ferry plan --stages` does.
//
// The units of a captured GPT are the layers of its chain: what is before the first block, each
// block, and what is behind the last. So a plan says how many layers each stage has.
#pragma once

#include "ferry/pipe.h"
#include "real/train/gpt.h"
#include "real/train/options.h"

namespace ferry::real::train {

// Throws InputError for a plan that cannot be read, or is not for this model or these options.
Pipe make_pipe(const Options& options, const Gpt& model);

}  // namespace ferry::real::train
