// The arguments that `ferry plan`, `ferry simulate` and `ferry report` share: as typed, and parsed
// into a request.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/model_program.h"
#include "cli/training_options.h"
#include "formats/program.h"
#include "plan/planner.h"
#include "scenarios/hardware.h"
#include "scenarios/kernel_times.h"

namespace CLI {
class App;
}

namespace ferry::cli {

struct Context;
class PeakRecorders;

// The arguments as typed.
struct PolicyArguments {
  std::string subject;   // a program's name or path, a scenario file, or a model
  ModelArguments model;  // how a model is trained
  std::string hardware;
  std::string budget;
  std::vector<std::string> policies;
  TrainingArguments training;
  std::string offload_all_as;  // empty: trl
  std::string alloc_conf;
  bool segments_go_up = false;
  std::int64_t microbatches = 0;
  std::vector<std::string> schedules;  // of micro-batches; several only with --stages
  bool unchecked = false;
  bool allocated = false;
  bool no_spans = false;
  bool no_modules = false;
  bool no_expandable = false;
  bool json = false;
  bool csv = false;
  std::vector<std::filesystem::path> times;
  std::filesystem::path plan;      // a plan to run
  std::filesystem::path output;    // the plan to write
  std::filesystem::path log;       // the stream log to write
  std::filesystem::path trace;     // the trace to write
  std::filesystem::path snapshot;  // the memory snapshot to write
  std::vector<std::string> typed;  // the words of the command line after the program's name
};

// The parsed and checked arguments.
struct PolicyRequest {
  Program program;
  std::string program_name;
  Hardware hardware;
  plan::PlanRequest plan;
  TrainingRequest training;
  std::int64_t microbatches = 1;
  bool every_policy = false;  // the user named no policy
  std::vector<std::filesystem::path> times;
  TimesUsed times_used;
  const PeakRecorders* peaks = nullptr;  // records the rows' runs (cli/peak_owners.h)
};

// The allowed values of --policy and its default, for the help.
std::string policy_choices();
void add_policy_options(CLI::App& command, PolicyArguments& arguments, Context& context);

// Parses a part of the request: the program, the card, the budget, the optimizer and whether to
// check. A scenario's values apply where `arguments` has none, and are stored there. Throws
// InputError for wrong arguments.
PolicyRequest understand_subject(PolicyArguments& arguments);
// Parses the whole request. Throws InputError for wrong arguments.
PolicyRequest understand(const PolicyArguments& arguments);

}  // namespace ferry::cli
