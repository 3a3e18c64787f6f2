// The options of a training with micro-batches and pipeline stages.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "real/train/options.h"

namespace ferry::real::train {

// The options as typed.
struct TypedPipeline {
  std::string schedule;
  std::string checkpoint;
  std::int64_t stages_per_device = 0;
};

void add_pipeline_options(CLI::App& command, Options& options, TypedPipeline& typed);
// Checks the pipeline's options and puts `typed` into `options`. Call it after the other options
// were checked. Throws InputError if the options contradict each other.
void understand_pipeline(Options& options, const TypedPipeline& typed);

}  // namespace ferry::real::train
