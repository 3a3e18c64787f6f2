// What a planned training is: the optimizer and how it is implemented, the steps, the workspaces;
// as options of `ferry plan` and `ferry simulate`.
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

// As typed.
struct TrainingArguments {
  std::string optimizer;       // empty: adamw
  std::string implementation;  // empty: foreach
  std::size_t steps = 0;       // 0: 3
  bool keep_gradients = false;
  bool clip_grad_norm = false;
  bool grad_scaler = false;
  std::string workspace_config;  // empty: the card's default
  bool is_captured = false;      // the optimizer is the script's
};

// As understood.
struct TrainingRequest {
  std::string optimizer;  // its name
  sim::Training training;
  std::optional<std::int64_t> workspace_bytes;
  bool by_default = false;   // nobody asked for this optimizer
  bool is_captured = false;  // it is the script's
};

void add_training_options(CLI::App& command, TrainingArguments& arguments, Context& context);

// Throws InputError, which names the option.
TrainingRequest understand(const TrainingArguments& arguments);

// What the capture of a script says of its training ("adamw fused", clipped, scaled), where nothing
// was typed in its place.
TrainingArguments with_captured(TrainingArguments arguments, const Program& program);
// The micro-batches that it says; 1 if it does not.
std::int64_t captured_microbatches(const Program& program);

// Throws InputError for the first of them that was typed and that pipelines have not.
void refuse_for_pipelines(const TrainingArguments& arguments);

// "parameters, gradients, activations, the state of adamw (the default; `--optimizer none`: none)".
std::string included(const TrainingRequest& request);
// "the third of 3 steps, each …": what the figures are of.
std::string step_of(const TrainingRequest& request, std::int64_t microbatches);

}  // namespace ferry::cli
