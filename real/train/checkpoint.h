// Saves the whole state of a training in a file, and resumes from it, bit for bit.
//
// N steps are K steps, a save, and in another process a resume and N - K steps: weights and
// buffers, the optimiser's moments, LibTorch's generators and the step are all there is, for a
// step's data depend on its number alone (workload.h). The policy is no part of it: a training may
// go on under another one.
//
// The file is one line of JSON (what was trained, the step, the rest's size and digest) and
// LibTorch's archive. It is written whole or not at all. A file that is foreign, cut short, damaged
// or of another training is refused before anything is changed, with what is wrong.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>

#include "real/train/workload.h"

namespace ferry::real::train {

// `step`: the number of steps done. Throws std::system_error if the file cannot be written.
void save_state(const std::filesystem::path& file, Workload& workload,
                torch::optim::Optimizer& optimizer, std::int64_t step);

// Returns the number of steps done. Throws InputError.
std::int64_t resume_state(const std::filesystem::path& file, Workload& workload,
                          torch::optim::Optimizer& optimizer);

}  // namespace ferry::real::train
