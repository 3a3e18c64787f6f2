// The commands of `ferry train`, one for each model, with the options of that model.
//
// A preset has the shapes of a published model. Options on the command line override it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "real/train/options.h"

namespace ferry::real::train {

struct ModelCommands {
  CLI::App* gpt = nullptr;
  CLI::App* llama = nullptr;
  CLI::App* resnet = nullptr;
};

// The options as typed.
struct TypedModel {
  std::string preset;
  std::string dtype = "f32";
};

ModelCommands add_models(CLI::App& app, Options& options, TypedModel& typed);
// Call it after the command line was parsed. Throws InputError for invalid shapes.
void understand_model(const ModelCommands& commands, Options& options, const TypedModel& typed);

}  // namespace ferry::real::train
