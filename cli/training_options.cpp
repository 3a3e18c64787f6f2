#include "cli/training_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <vector>

#include "cli/choices.h"
#include "cli/context.h"
#include "scenarios/cuda_memory.h"

namespace ferry::cli {

namespace {

constexpr std::size_t kMostSteps = 1000;
constexpr const char* kDefaultOptimizer = "adamw";

const std::vector<std::string> kOptimizerNames = {"none", "sgd", "momentum", "adam", "adamw"};
constexpr std::array kOptimizers = {sim::Optimizer::kNoOptimizer, sim::Optimizer::kSgd,
                                    sim::Optimizer::kMomentum, sim::Optimizer::kAdam,
                                    sim::Optimizer::kAdamW};
const std::vector<std::string> kImplementationNames = {"foreach", "for-loop", "fused"};
constexpr std::array kImplementations = {sim::OptimizerImplementation::kForeach,
                                         sim::OptimizerImplementation::kForLoop,
                                         sim::OptimizerImplementation::kFused};

}  // namespace

void add_training_options(CLI::App& command, TrainingArguments& arguments, Context& context) {
  CLI::Option* optimizer = command
                               .add_option("--optimizer", arguments.optimizer,
                                           "none, sgd, momentum, adam, adamw (default: adamw)")
                               ->type_name("NAME");
  CLI::Option* implementation =
      command
          .add_option("--optimizer-implementation", arguments.implementation,
                      "torch.optim's: foreach, for-loop, fused")
          ->type_name("NAME")
          ->capture_default_str();
  command
      .add_option("--steps", arguments.steps,
                  "Steps of the training; the figures are the last one's")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, kMostSteps))
      ->capture_default_str();
  command.add_flag("--keep-gradients", arguments.keep_gradients,
                   "zero_grad(set_to_none=False): gradients stay from step to step");
  command.add_flag("--clip-grad-norm", arguments.clip_grad_norm,
                   "Gradients are clipped before the optimizer's step");
  command
      .add_option("--cublas-workspace-config", arguments.workspace_config,
                  "As the variable CUBLAS_WORKSPACE_CONFIG (default: the card's)")
      ->type_name(":KIB:COUNT");
  context.values[optimizer] = [] { return Values{kOptimizerNames}; };
  context.values[implementation] = [] { return Values{kImplementationNames}; };
}

TrainingRequest understand(const TrainingArguments& arguments) {
  TrainingRequest request;
  request.by_default = arguments.optimizer.empty();
  const std::size_t optimizer = choice(
      "--optimizer", request.by_default ? kDefaultOptimizer : arguments.optimizer, kOptimizerNames);
  request.optimizer = kOptimizerNames[optimizer];
  request.training = {
      .optimizer = kOptimizers[optimizer],
      .implementation = kImplementations[choice("--optimizer-implementation",
                                                arguments.implementation, kImplementationNames)],
      .set_to_none = !arguments.keep_gradients,
      .clip_grad_norm = arguments.clip_grad_norm,
      .steps = arguments.steps};
  if (!arguments.workspace_config.empty()) {
    request.workspace_bytes =
        parse_workspace_config(arguments.workspace_config, "--cublas-workspace-config");
  }
  return request;
}

std::string included(const TrainingRequest& request) {
  const std::string memory = "parameters, gradients, activations";
  if (request.training.optimizer == sim::Optimizer::kNoOptimizer) {
    return memory + " (no optimizer)";
  }
  return memory + ", the state of " + request.optimizer +
         (request.by_default ? " (the default; or --optimizer none)" : "");
}

std::string step_of(const TrainingRequest& request, std::int64_t microbatches) {
  const bool optimizer = request.training.optimizer != sim::Optimizer::kNoOptimizer;
  const std::string one = microbatches == 1 ? std::string("one forward and backward")
                                            : fmt::format("{} micro-batches", microbatches);
  return fmt::format("{}{}, the last of {}", one, optimizer ? " and the optimizer's" : "",
                     request.training.steps);
}

}  // namespace ferry::cli
