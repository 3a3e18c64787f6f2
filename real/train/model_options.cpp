#include "real/train/model_options.h"

#include <array>
#include <cstdint>

#include "formats/error.h"
#include "real/train/count_option.h"

namespace ferry::real::train {

namespace {

constexpr std::int64_t kVocabularyMost = std::int64_t{1} << 24;

// The two smallest shapes of GPT-2 (Radford et al., 2019; `n_layer`, `n_embd`, `n_head`, `n_ctx`
// and `n_vocab` in hparams.json).
struct GptPreset {
  const char* name;
  GptOptions shape;
};
constexpr std::array kGptPresets = {
    GptPreset{"gpt2",
              {.vocabulary = 50257, .layers = 12, .width = 768, .heads = 12, .context = 1024}},
    GptPreset{"gpt2-medium",
              {.vocabulary = 50257, .layers = 24, .width = 1024, .heads = 16, .context = 1024}}};

// Llama 3.2 1B (`hidden_size`, `intermediate_size`, … in config.json): 1,235,814,400 weights. The
// context is 2048 of its 131072 tokens.
struct LlamaPreset {
  const char* name;
  LlamaOptions shape;
};
constexpr std::array kLlamaPresets = {LlamaPreset{"llama-1b",
                                                  {.vocabulary = 128256,
                                                   .layers = 16,
                                                   .width = 2048,
                                                   .heads = 32,
                                                   .kv_heads = 8,
                                                   .hidden = 8192,
                                                   .context = 2048}}};

void add_preset(CLI::App& command, TypedModel& typed, const std::vector<std::string>& names,
                const char* text) {
  command.add_option("--preset", typed.preset, text)
      ->type_name("NAME")
      ->check(CLI::IsMember(names).description(""));
}

// Adds the options of a text model.
void add_text(CLI::App& command, Options& options, TypedModel& typed) {
  command
      .add_option("--dtype", typed.dtype,
                  "f32, or bf16 for weights, gradients, AdamW's moments and all results except the "
                  "loss")
      ->type_name("NAME")
      ->check(CLI::IsMember({"f32", "bf16"}).description(""))
      ->capture_default_str();
  command
      .add_option("--data", options.data,
                  "A folder of text (default: a novel that comes with Ferry)")
      ->type_name("DIR");
}

template <class Presets>
std::vector<std::string> names(const Presets& presets) {
  std::vector<std::string> all;
  for (const auto& preset : presets) all.emplace_back(preset.name);
  return all;
}

template <class Shape>
void add_shape(CLI::App& command, Shape& shape) {
  count(command, "--layers", shape.layers, 1, 1024, "Number of blocks");
  count(command, "--width", shape.width, 1, 1 << 16, "Size of a token's vector");
  count(command, "--heads", shape.heads, 1, 1024, "Attention heads");
  count(command, "--context", shape.context, 1, 1 << 20, "Bytes that the model sees");
  count(command, "--vocabulary", shape.vocabulary, 256, kVocabularyMost,
        "Rows of the embedding; tokens are bytes and use the first 256");
}

CLI::App* add_gpt(CLI::App& app, Options& options, TypedModel& typed) {
  CLI::App* command = app.add_subcommand("gpt", "A GPT learns text, byte by byte");
  add_preset(*command, typed, names(kGptPresets), "The shapes of gpt2 or gpt2-medium");
  add_shape(*command, options.gpt);
  command->add_option("--dropout", options.gpt.dropout, "The fraction dropped, from 0 to below 1")
      ->type_name("P")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  add_text(*command, options, typed);
  return command;
}

CLI::App* add_llama(CLI::App& app, Options& options, TypedModel& typed) {
  CLI::App* command = app.add_subcommand("llama", "A Llama learns text, byte by byte");
  add_preset(*command, typed, names(kLlamaPresets),
             "The shapes of llama-1b, which is Llama 3.2 1B");
  add_shape(*command, options.llama);
  count(*command, "--kv-heads", options.llama.kv_heads, 1, 1024,
        "Heads of keys and values; a divisor of --heads");
  count(*command, "--hidden", options.llama.hidden, 1, 1 << 20, "Width of the MLP");
  command->add_flag("--untied", options.llama.untied, "The head has weights of its own");
  add_text(*command, options, typed);
  return command;
}

CLI::App* add_resnet(CLI::App& app, Options& options) {
  CLI::App* command =
      app.add_subcommand("resnet", "A ResNet learns pictures that the program draws");
  count(*command, "--layers", options.resnet.layers, 1, 256,
        "Basic blocks in each of three stages");
  count(*command, "--width", options.resnet.width, 1, 4096, "Channels of the first stage");
  count(*command, "--images", options.images, 10, 1 << 20, "Number of pictures");
  return command;
}

// Takes the values of the preset, except for options that the user typed.
template <class Shape>
void take_shape(const CLI::App& command, Shape& shape, const Shape& preset) {
  const auto take = [&](const char* option, auto member) {
    if (command.count(option) == 0) shape.*member = preset.*member;
  };
  take("--layers", &Shape::layers);
  take("--width", &Shape::width);
  take("--heads", &Shape::heads);
  take("--context", &Shape::context);
  take("--vocabulary", &Shape::vocabulary);
  if constexpr (requires { preset.kv_heads; }) {
    take("--kv-heads", &Shape::kv_heads);
    take("--hidden", &Shape::hidden);
    take("--untied", &Shape::untied);
  }
}

template <class Presets, class Shape>
void take_preset(const CLI::App& command, const Presets& presets, const std::string& name,
                 Shape& shape) {
  if (!command.parsed()) return;
  for (const auto& preset : presets) {
    if (name == preset.name) take_shape(command, shape, preset.shape);
  }
}

void check(const Options& options) {
  const auto refuse = [](const char* option, const char* text) {
    throw InputError(option, 0, text);
  };
  if (options.model == Model::kGpt && options.gpt.width % options.gpt.heads != 0) {
    refuse("--width", "expected a multiple of --heads");
  }
  if (options.model == Model::kResnet && options.batch > options.images) {
    refuse("--batch", "expected no more than --images");
  }
  if (options.model != Model::kLlama) return;
  const LlamaOptions& llama = options.llama;
  if (llama.width % (2 * llama.heads) != 0) {
    refuse("--width", "expected a multiple of twice --heads: rotary positions rotate pairs");
  }
  if (llama.heads % llama.kv_heads != 0) refuse("--kv-heads", "expected a divisor of --heads");
}

}  // namespace

ModelCommands add_models(CLI::App& app, Options& options, TypedModel& typed) {
  ModelCommands commands;
  commands.gpt = add_gpt(app, options, typed);
  commands.llama = add_llama(app, options, typed);
  commands.resnet = add_resnet(app, options);
  return commands;
}

void understand_model(const ModelCommands& commands, Options& options, const TypedModel& typed) {
  options.model = Model::kGpt;
  if (commands.llama->parsed()) options.model = Model::kLlama;
  if (commands.resnet->parsed()) options.model = Model::kResnet;
  take_preset(*commands.gpt, kGptPresets, typed.preset, options.gpt);
  take_preset(*commands.llama, kLlamaPresets, typed.preset, options.llama);
  options.dtype = typed.dtype == "bf16" ? torch::kBFloat16 : torch::kFloat;
  check(options);
}

}  // namespace ferry::real::train
