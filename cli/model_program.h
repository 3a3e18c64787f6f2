// Models as subjects of `ferry plan` and its like: hf:ORG/NAME, a config.json, torchvision:NAME,
// timm:NAME, the folder of a diffusers pipeline, FILE.py:FUNCTION, or a Python script. A Python
// program captures them (python/ferry_command/model.py) and keeps most of them in a cache, so the
// command itself links neither Python nor torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// The options of a model, as typed.
struct ModelArguments {
  std::int64_t tokens = 0;  // 0: as many as the model takes, at most 2048
  std::int64_t batch = 0;   // 0: one
  std::string dtype;        // empty: as in the model's configuration
  std::string attention;    // empty: as transformers chooses
  std::string lora;         // empty: all parameters are trained
  std::string qlora;        // the same on weights of four bits
  bool checkpointing = false;
  bool sft = false;  // the step of TRL's SFTTrainer, or of its DPOTrainer, instead of a Trainer's
  bool dpo = false;
  bool trust = false;               // code of the hub may run
  std::vector<std::string> script;  // the arguments of a script
  bool quiet = false;               // print nothing if the model cannot be captured
};

void add_model_options(CLI::App& command, ModelArguments& arguments);

// True if the subject is a model. A file that begins as a program does is none, whatever its name.
bool is_model(const std::string& subject);

// True if the subject is a configuration of transformers: hf:ORG/NAME or a config.json.
bool is_configuration(const std::string& subject);

// Throws InputError if an option of a model was typed, for a subject that is not one.
void refuse_model_options(const std::string& subject, const ModelArguments& arguments);

// Returns the model's program, as it runs on the card. Captures it if it is not in the cache.
// Throws Ended after the Python program has printed an error (nothing if `quiet`), and
// std::system_error if it cannot be started.
Program model_program(const std::string& subject, const ModelArguments& arguments,
                      const Hardware& hardware);

}  // namespace ferry::cli
