#include "cli/training_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console/choices.h"
#include "cli/console/context.h"
#include "scenarios/cuda_memory.h"

namespace ferry::cli {

namespace {

constexpr std::size_t kMostSteps = 1000;
constexpr std::size_t kDefaultSteps = 3;
constexpr const char* kDefaultOptimizer = "adamw";
constexpr const char* kDefaultImplementation = "foreach";

const std::vector<std::string> kOptimizerNames = {"none", "sgd", "momentum", "adam", "adamw"};
constexpr std::array kOptimizers = {sim::Optimizer::kNoOptimizer, sim::Optimizer::kSgd,
                                    sim::Optimizer::kMomentum, sim::Optimizer::kAdam,
                                    sim::Optimizer::kAdamW};
const std::vector<std::string> kImplementationNames = {"foreach", "for-loop", "fused"};
constexpr std::array kImplementations = {sim::OptimizerImplementation::kForeach,
                                         sim::OptimizerImplementation::kForLoop,
                                         sim::OptimizerImplementation::kFused};

const std::vector<std::string> kStateNames = {"device", "host", "in-backward"};
constexpr std::array kStates = {sim::OptimizerState::kDevice, sim::OptimizerState::kHost,
                                sim::OptimizerState::kHostInBackward};

// Throws InputError if a training cannot have its optimizer's state there.
void check_state(const sim::Training& training) {
  if (training.state == sim::OptimizerState::kDevice) return;
  if (training.optimizer == sim::Optimizer::kNoOptimizer) {
    throw InputError("--optimizer-state", 0, "expected an --optimizer");
  }
  if (training.state == sim::OptimizerState::kHostInBackward &&
      (training.clip_grad_norm || training.grad_scaler)) {
    throw InputError("--optimizer-state", 0,
                     "expected host: gradients that are clipped or unscaled must all be there, and "
                     "in-backward drops each one at once");
  }
}

// Returns what the program's file says about its capture under this key; empty if nothing.
std::string captured(const Program& program, std::string_view key) {
  const auto found = std::find_if(program.about.begin(), program.about.end(),
                                  [key](const auto& line) { return line.first == key; });
  return found == program.about.end() ? "" : found->second;
}

}  // namespace

void add_training_options(CLI::App& command, TrainingArguments& arguments, Context& context) {
  CLI::Option* optimizer = command
                               .add_option("--optimizer", arguments.optimizer,
                                           "Optimizer: none, sgd, momentum, adam, adamw "
                                           "(default: adamw)")
                               ->type_name("NAME");
  CLI::Option* implementation =
      command
          .add_option("--optimizer-implementation", arguments.implementation,
                      "As in torch.optim: foreach, for-loop, fused (default: foreach)")
          ->type_name("NAME");
  CLI::Option* state =
      command
          .add_option("--optimizer-state", arguments.state,
                      "Where the optimizer's state lives, as with torch_ferry.optimizer: device, "
                      "host, in-backward (on the host, updated in backward; default: device)")
          ->type_name("NAME");
  command
      .add_option("--steps", arguments.steps,
                  "Steps to simulate; the figures are those of the last one (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, kMostSteps));
  command.add_flag("--keep-gradients", arguments.keep_gradients,
                   "Keep gradients from step to step, as zero_grad(set_to_none=False) does");
  command.add_flag("--clip-grad-norm", arguments.clip_grad_norm,
                   "Clip gradients before the optimizer's step");
  command.add_flag("--grad-scaler", arguments.grad_scaler,
                   "Unscale gradients before the optimizer's step, as torch.amp.GradScaler does");
  command
      .add_option("--cublas-workspace-config", arguments.workspace_config,
                  "As the environment variable CUBLAS_WORKSPACE_CONFIG (default: the card's)")
      ->type_name(":KIB:COUNT");
  context.values[optimizer] = [] { return Values{kOptimizerNames}; };
  context.values[implementation] = [] { return Values{kImplementationNames}; };
  context.values[state] = [] { return Values{kStateNames}; };
}

TrainingRequest understand(const TrainingArguments& arguments) {
  TrainingRequest request;
  request.is_captured = arguments.is_captured;
  request.by_default = arguments.optimizer.empty();
  const std::size_t optimizer = choice(
      "--optimizer", request.by_default ? kDefaultOptimizer : arguments.optimizer, kOptimizerNames);
  request.optimizer = kOptimizerNames[optimizer];
  const std::size_t implementation =
      choice("--optimizer-implementation",
             arguments.implementation.empty() ? kDefaultImplementation : arguments.implementation,
             kImplementationNames);
  const std::size_t state =
      choice("--optimizer-state", arguments.state.empty() ? kStateNames.front() : arguments.state,
             kStateNames);
  request.training = {.optimizer = kOptimizers[optimizer],
                      .implementation = kImplementations[implementation],
                      .state = kStates[state],
                      .set_to_none = !arguments.keep_gradients,
                      .clip_grad_norm = arguments.clip_grad_norm,
                      .grad_scaler = arguments.grad_scaler,
                      .steps = arguments.steps == 0 ? kDefaultSteps : arguments.steps};
  check_state(request.training);
  if (arguments.grad_scaler && request.training.optimizer == sim::Optimizer::kNoOptimizer) {
    throw InputError("--grad-scaler", 0,
                     "expected an --optimizer: gradients are unscaled before its step");
  }
  if (!arguments.workspace_config.empty()) {
    request.workspace_bytes =
        parse_workspace_config(arguments.workspace_config, "--cublas-workspace-config");
  }
  return request;
}

TrainingArguments with_captured(TrainingArguments arguments, const Program& program) {
  if (!arguments.optimizer.empty()) return arguments;
  const std::string words = captured(program, "optimizer");
  if (words.empty() && !captured(program, "script").empty()) {
    arguments.optimizer = "none";  // the script ended without an optimizer's step
    return arguments;
  }
  const std::size_t space = std::min(words.find(' '), words.size());
  const std::string name = words.substr(0, space);
  const std::string implementation = words.substr(std::min(space + 1, words.size()));
  const bool is_known = find_name(name, kOptimizerNames).has_value() &&
                        find_name(implementation, kImplementationNames).has_value();
  if (!is_known) return arguments;  // the optimizer is of another library
  arguments.is_captured = true;
  arguments.optimizer = name;
  if (arguments.implementation.empty()) arguments.implementation = implementation;
  arguments.clip_grad_norm |= !captured(program, "clipped").empty();
  arguments.grad_scaler |= !captured(program, "scaled").empty();
  return arguments;
}

std::int64_t captured_microbatches(const Program& program) {
  constexpr int kMost = 4096;
  const int count = std::atoi(captured(program, "microbatches").c_str());
  return count >= 1 && count <= kMost ? count : 1;
}

void refuse_for_pipelines(const TrainingArguments& arguments) {
  const std::pair<const char*, bool> typed[] = {
      {"--optimizer-implementation", !arguments.implementation.empty()},
      {"--optimizer-state", !arguments.state.empty()},
      {"--steps", arguments.steps != 0},
      {"--keep-gradients", arguments.keep_gradients},
      {"--clip-grad-norm", arguments.clip_grad_norm},
      {"--grad-scaler", arguments.grad_scaler},
      {"--cublas-workspace-config", !arguments.workspace_config.empty()}};
  for (const auto& [option, is_typed] : typed) {
    if (!is_typed) continue;
    throw InputError(option, 0,
                     "expected no --stages: a pipeline's plan has one step and no optimizer "
                     "update, only the memory of the optimizer's state");
  }
}

std::string included(const TrainingRequest& request) {
  const std::string memory = "parameters, gradients, activations";
  if (request.training.optimizer == sim::Optimizer::kNoOptimizer) {
    return memory + " (no optimizer)";
  }
  const bool on_host = request.training.state != sim::OptimizerState::kDevice;
  return memory + (on_host ? "; on the host the state of " : ", the state of ") +
         request.optimizer +
         (request.by_default    ? " (the default; or --optimizer none)"
          : request.is_captured ? " (as captured)"
                                : "");
}

std::string step_of(const TrainingRequest& request, std::int64_t microbatches) {
  const bool optimizer = request.training.optimizer != sim::Optimizer::kNoOptimizer;
  const std::string one = microbatches == 1 ? std::string("one forward and backward")
                                            : fmt::format("{} micro-batches", microbatches);
  return fmt::format("{}{}, the last of {}", one, optimizer ? " and an optimizer update" : "",
                     request.training.steps);
}

}  // namespace ferry::cli
