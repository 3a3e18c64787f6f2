#include "real/train/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/old_names.h"
#include "formats/plan_file.h"
#include "real/train/count_option.h"
#include "real/train/model_options.h"
#include "real/train/needs.h"
#include "real/train/pipeline_options.h"
#include "scenarios/units.h"

namespace ferry::real::train {

namespace {

constexpr const char* kFooter = R"(
Policies:
  keep         plain LibTorch
  offload      what is large enough moves
  checkpoint   every block is recomputed
  budget       what a plan says moves, or is recomputed
  mixed        the same; without a plan every second block is recomputed, and the rest moves

Examples:
  ferry train gpt                                    a small GPT learns a novel, byte by byte
  ferry train gpt --policy offload --disk /var/tmp   the same losses, in less memory
  ferry train resnet --json                          a line a step, for machines
  ferry train llama --preset llama-1b --dtype bf16 --device cuda       Llama 3.2 1B's shapes
  ferry train gpt --capture gpt.jsonl                what `ferry plan gpt.jsonl` plans, and
  ferry train gpt --policy mixed --plan gpt.plan     what executes the plan
  ferry train gpt --policy checkpoint                the same losses, in less memory and more time
  ferry train gpt --microbatches 4                         four micro-batches, one after the other, and
  ferry train gpt --microbatches 4 --stages 2              the same losses from a pipeline of two threads
  ferry train gpt --microbatches 4 --stages 2 --plan pipe.plan       by a plan of `ferry plan --stages`
  ferry train gpt --steps 500 --save gpt.state       Ctrl-C ends the step and saves;
  ferry train gpt --steps 500 --save gpt.state --resume gpt.state      goes on, bit for bit

Sizes are written 64MiB or 1GB. Losses are the same bits under every policy.
Exit codes: 0 ok, 2 usage or bad input, 3 out of memory, 7 a resource is missing (a GPU, room on
the disk), 130 or 143 stopped by Ctrl-C or SIGTERM (what was asked to be saved is).)";

constexpr std::array kPolicyKinds = {PolicyKind::kKeep, PolicyKind::kOffload,
                                     PolicyKind::kCheckpoint, PolicyKind::kBudget,
                                     PolicyKind::kMixed};

// As typed.
struct Typed {
  std::string policy = "keep";
  std::string device = "cpu";
  std::string disk_bytes_max;
  std::string window;
  std::string prefetch;
  std::string min_bytes;
};

std::optional<std::int64_t> size(const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return parse_bytes(text);
  } catch (const UnitError& error) {
    throw InputError(option, 0, error.what());
  }
}

constexpr OldName kOldNames[] = {{"--chunks", "--microbatches"},
                                 {"--disk-limit", "--disk-bytes-max"}};

void add_training(CLI::App& command, Options& options, Typed& typed) {
  count(command, "--batch", options.batch, 1, 1 << 20, "Examples a step");
  count(command, "--microbatches", options.microbatches, 1, 1 << 20,
        "Micro-batches, one backward each: --batch is cut into so many");
  count(command, "--steps", options.steps, 0, std::int64_t{1} << 40, "Train up to this step");
  count(command, "--seed", options.seed, 0, std::int64_t{1} << 62, "Of weights, data and dropout");
  command.add_option("--lr", options.learning_rate, "AdamW's learning rate")
      ->type_name("RATE")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  count(command, "--threads", options.threads, 0, 4096, "That compute; 0: LibTorch's choice");
  command.add_option("--device", typed.device, "cpu or cuda")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->capture_default_str();
}

void add_policy(CLI::App& command, Options& options, Typed& typed) {
  command.add_option("--policy", typed.policy, "keep, offload, checkpoint, budget or mixed")
      ->type_name("NAME")
      ->check(CLI::IsMember({"keep", "offload", "checkpoint", "budget", "mixed"}).description(""))
      ->capture_default_str();
  command
      .add_option("--plan", options.plan,
                  "Of `ferry plan`, for --policy budget or mixed; with --stages, of `ferry plan "
                  "--stages`")
      ->type_name("FILE");
  command.add_option("--disk", options.disk, "Offload to a file in this folder, not to memory")
      ->type_name("DIR");
  command.add_option("--disk-bytes-max", typed.disk_bytes_max, "The file's size at most")
      ->type_name("SIZE");
  command.add_flag("--keep-when-full", options.keep_when_full,
                   "What the file or the host has no room for stays; else that is an error");
  command.add_option("--window", typed.window, "On its way out and still on the device, at most")
      ->type_name("SIZE");
  command.add_option("--prefetch", typed.prefetch, "Brought back ahead of its use, at most")
      ->type_name("SIZE");
  command.add_option("--min-bytes", typed.min_bytes, "What is smaller stays")->type_name("SIZE");
}

void add_files(CLI::App& command, Options& options) {
  command.add_option("--save", options.save, "Write the training's state here at the end")
      ->type_name("FILE");
  count(command, "--save-every", options.save_every, 0, std::int64_t{1} << 40,
        "And after so many steps each");
  command.add_option("--resume", options.resume, "Go on from a state that --save wrote")
      ->type_name("FILE");
  command.add_flag("--json", options.json, "A line a step on stdout, for machines");
  command.add_option("--log", options.log, "Write what its streams did here, for `ferry check`")
      ->type_name("FILE");
  command
      .add_option("--decisions", options.decisions, "Write what was decided, for `ferry replay`")
      ->type_name("FILE");
  command.add_option("--trace", options.trace, "Write a trace here, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      .add_option("--capture", options.capture,
                  "Write one step as a program here, for `ferry plan`, and stop")
      ->type_name("FILE");
  command.add_flag("--plain", options.plain,
                   "With --capture: the blocks are no checkpoints, so that a plan may recompute "
                   "any of their operators");
}

bool planned(const Options& options) {
  return options.policy == PolicyKind::kBudget || options.policy == PolicyKind::kMixed;
}

// A plan and a capture number every block as a checkpoint, unless the plan has spans of operators.
Segments segments(const Options& options) {
  if (options.policy == PolicyKind::kMixed && options.plan.empty()) return Segments::kAlternate;
  if (options.plain || (options.planned && !options.planned->spans.empty())) {
    return Segments::kPlain;
  }
  const bool all =
      options.policy == PolicyKind::kCheckpoint || planned(options) || !options.capture.empty();
  return all ? Segments::kAll : Segments::kPlain;
}

void require_consistent(const Options& options) {
  const bool staged = options.stages > 0 && !options.plan.empty();
  const bool moves =
      staged || (options.policy != PolicyKind::kKeep && options.policy != PolicyKind::kCheckpoint);
  const char* moving = "--policy offload, budget or mixed";
  needs("--disk", !options.disk.empty(), moves, moving);
  needs("--disk", !options.disk.empty(), !options.cuda, "--device cpu");
  needs("--disk-bytes-max", options.disk_bytes_max.has_value(), !options.disk.empty(), "--disk");
  needs("--keep-when-full", options.keep_when_full, moves, moving);
  // A plan has its own choice.
  const bool free = moves && options.policy != PolicyKind::kBudget && options.plan.empty();
  const char* freely = "--policy offload, or mixed without a plan";
  needs("--window", options.window.has_value(), free, freely);
  needs("--prefetch", options.prefetch.has_value(), free, freely);
  needs("--min-bytes", options.min_bytes.has_value(), free, freely);
  needs("--decisions", !options.decisions.empty(), moves, moving);
  needs("--trace", !options.trace.empty(), moves, moving);
  needs("--plan", !options.plan.empty(), planned(options) || staged,
        "--policy budget or mixed, or --stages N");
  needs("--policy", options.policy != PolicyKind::kKeep, !staged,
        "no plan for --stages, which has one for each stage");
  const bool trains =
      !options.save.empty() || !options.resume.empty() || !options.log.empty() || options.json;
  needs("--capture", !options.capture.empty(), options.policy == PolicyKind::kKeep && !trains,
        "no --policy, --save, --resume, --log or --json: it writes one step down, and trains no "
        "further");
  needs("--plain", options.plain, !options.capture.empty(), "--capture FILE");
  if (!std::isfinite(options.learning_rate)) throw InputError("--lr", 0, "expected a number");
  needs("--save-every", options.save_every > 0, !options.save.empty(), "--save");
  if (options.policy == PolicyKind::kBudget && options.plan.empty()) {
    throw InputError("--policy budget", 0,
                     "expected with --plan FILE, which two commands make: `ferry train ... "
                     "--capture program.jsonl`, then `ferry plan program.jsonl --card NAME "
                     "--budget SIZE -o FILE`");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  CLI::App app("Trains with LibTorch, with activations offloaded or recomputed.", "ferry train");
  app.set_version_flag("--version", "ferry " FERRY_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  Options options;
  Typed typed;
  TypedPipeline staged;
  TypedModel model;
  const ModelCommands models = add_models(app, options, model);
  for (CLI::App* command : app.get_subcommands({})) {
    add_training(*command, options, typed);
    add_policy(*command, options, typed);
    add_files(*command, options);
  }
  add_pipeline_options(*models.gpt, options, staged);
  NewNames words = with_new_names({argv + std::min(argc, 1), argv + argc}, kOldNames);
  for (const std::string& note : words.notes) fmt::print(stderr, "ferry: {}\n", note);
  try {
    app.parse(std::vector<std::string>(words.words.rbegin(), words.words.rend()));
  } catch (const CLI::Success& asked) {  // --help and --version
    app.exit(asked);
    return std::nullopt;
  }
  understand_model(models, options, model);
  options.cuda = typed.device == "cuda";
  for (const PolicyKind policy : kPolicyKinds) {
    if (typed.policy == name(policy)) options.policy = policy;
  }
  options.disk_bytes_max = size("--disk-bytes-max", typed.disk_bytes_max);
  options.window = size("--window", typed.window);
  options.prefetch = size("--prefetch", typed.prefetch);
  options.min_bytes = size("--min-bytes", typed.min_bytes);
  require_consistent(options);
  understand_pipeline(options, staged);
  if (!options.plan.empty() && options.stages == 0) {
    options.planned = std::make_shared<const Plan>(read_plan(options.plan));
  }
  options.gpt.segments = options.llama.segments = options.resnet.segments = segments(options);
  return options;
}

const char* name(Model model) {
  switch (model) {
    case Model::kGpt:
      return "gpt";
    case Model::kLlama:
      return "llama";
    case Model::kResnet:
      return "resnet";
  }
  return "";
}

const char* name(PolicyKind policy) {
  switch (policy) {
    case PolicyKind::kKeep:
      return "keep";
    case PolicyKind::kOffload:
      return "offload";
    case PolicyKind::kCheckpoint:
      return "checkpoint";
    case PolicyKind::kBudget:
      return "budget";
    case PolicyKind::kMixed:
      return "mixed";
  }
  return "";
}

}  // namespace ferry::real::train
