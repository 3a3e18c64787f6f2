// The options of `ferry plan`, `ferry simulate` and `ferry report` that describe the training: the
// optimizer and its implementation, the number of steps, and the workspaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "formats/program.h"
#include "sim/run/training/training.h"

namespace CLI {
class App;
}

namespace ferry::cli {

struct Context;

// The options as typed.
struct TrainingArguments {
  std::string optimizer;       // empty: adamw
  std::string implementation;  // empty: foreach
  std::string state;           // empty: device
  std::size_t steps = 0;       // 0: 3
  bool keep_gradients = false;
  bool clip_grad_norm = false;
  bool grad_scaler = false;
  std::string workspace_config;  // empty: the card's default
  bool is_captured = false;      // the optimizer is that of the captured script
};

// The parsed options.
struct TrainingRequest {
  std::string optimizer;  // its name
  sim::Training training;
  std::optional<std::int64_t> workspace_bytes;
  bool by_default = false;   // the user named no optimizer
  bool is_captured = false;  // the optimizer is that of the captured script
};

void add_training_options(CLI::App& command, TrainingArguments& arguments, Context& context);

// Throws InputError that names the wrong option.
TrainingRequest understand(const TrainingArguments& arguments);

// Fills options that the user did not type with what the program's capture says of the script's
// training ("adamw fused", clipped, scaled).
TrainingArguments with_captured(TrainingArguments arguments, const Program& program);
// The number of micro-batches that the capture says; 1 if it says none.
std::int64_t captured_microbatches(const Program& program);

// Throws InputError for the first typed option that pipelines do not support.
void refuse_for_pipelines(const TrainingArguments& arguments);

// Returns "parameters, gradients, activations, the state of adamw (the default; …)". A state on the
// host is named as such.
std::string included(const TrainingRequest& request);
// Says what step the figures describe: "one forward and backward …, the last of 3".
std::string step_of(const TrainingRequest& request, std::int64_t microbatches);

}  // namespace ferry::cli
