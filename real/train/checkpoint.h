// Saves the whole state of a training to a file, and resumes from it with the same bits.
//
// N steps give the same result as K steps, a save, and in another process a resume and N - K steps.
// The state is the weights and buffers, the optimizer's moments, LibTorch's generators and the
// number of the step; the data of a step depend only on that number (workload.h). The policy is not
// part of it: a training may continue under another one.
//
// The file has one line of JSON (the training, the step, the size and digest of the rest) and
// LibTorch's archive. An error leaves no partial file. If a file is foreign, incomplete, damaged or
// of another training, an error says what is wrong, and nothing is changed.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>

#include "real/train/workload.h"

namespace ferry::real::train {

// `step` is the number of steps done. Throws std::system_error if the file cannot be written.
void save_state(const std::filesystem::path& file, Workload& workload,
                torch::optim::Optimizer& optimizer, std::int64_t step);

// Returns the number of steps done. Throws InputError.
std::int64_t resume_state(const std::filesystem::path& file, Workload& workload,
                          torch::optim::Optimizer& optimizer);

}  // namespace ferry::real::train
