// The commands of `ferry train`, a model each, with the options that are the model's own.
//
// A preset is a model's shapes under their published name. Options typed beside it win.
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

// As typed.
struct TypedModel {
  std::string preset;
  std::string dtype = "f32";
};

ModelCommands add_models(CLI::App& app, Options& options, TypedModel& typed);
// Call it once the command line is parsed. Throws InputError for shapes that make no sense.
void understand_model(const ModelCommands& commands, Options& options, const TypedModel& typed);

}  // namespace ferry::real::train
