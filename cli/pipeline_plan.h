// `ferry plan --stages N`: plans a program as a pipeline over several GPUs.
//
// plan/pipeline_planner.h finds the rows; this file has the options and the output. Options that
// make sense for one GPU alone are rejected with an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/policies.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// The pipeline's options, as typed. PolicyArguments has the others.
struct PipelineArguments {
  std::uint32_t stages = 0;  // 0: no pipeline
  std::size_t stages_per_device = 2;
  std::string balance = "time";
  bool relay_skips = false;
};

void add_pipeline_options(CLI::App& command, PipelineArguments& arguments, Context& context);
std::string list_of_pipeline_policies();

// Prints the table or the JSON on stdout and errors on stderr; returns the exit code. Throws
// InputError for wrong arguments.
int plan_pipeline(PolicyArguments arguments, const PipelineArguments& pipeline);

}  // namespace ferry::cli
