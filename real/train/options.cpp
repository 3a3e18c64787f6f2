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
  keep           plain LibTorch
  offload        offloads saved tensors that are large enough
  checkpoint     recomputes every block
  offload-some   offloads or recomputes as a plan says
  mixed          the same; without a plan it recomputes every second block and offloads the rest

Examples:
  ferry train gpt                                    a small GPT learns a novel, byte by byte
  ferry train gpt --policy offload --disk /var/tmp   the same losses, in less memory
  ferry train resnet --json                          one JSON line per step
  ferry train llama --preset llama-1b --dtype bf16 --device cuda       the shapes of Llama 3.2 1B
  ferry train gpt --capture gpt.jsonl                write a program for `ferry plan gpt.jsonl`
  ferry train gpt --policy mixed --plan gpt.plan     execute the plan
  ferry train gpt --policy checkpoint                the same losses, in less memory and more time
  ferry train gpt --microbatches 4                         four micro-batches, one after the other
  ferry train gpt --microbatches 4 --stages 2              the same losses from a pipeline of two threads
  ferry train gpt --microbatches 4 --stages 2 --plan pipe.plan       with a plan of `ferry plan --stages`
  ferry train gpt --steps 500 --save gpt.state       Ctrl-C ends the step and saves
  ferry train gpt --steps 500 --save gpt.state --resume gpt.state      continue, with the same bits

Sizes are written as 64MiB or 1GB. Losses have the same bits under every policy.
Exit codes: 0 ok, 2 usage or bad input, 3 out of memory, 7 a resource is missing (a GPU, room on
the disk), 130 or 143 stopped by Ctrl-C or SIGTERM (with --save, after saving).)";

constexpr std::array kPolicyKinds = {PolicyKind::kKeep, PolicyKind::kOffload,
                                     PolicyKind::kCheckpoint, PolicyKind::kOffloadSome,
                                     PolicyKind::kMixed};

// The options as typed.
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

constexpr OldValue kOldValues[] = {{"--policy", "budget", "offload-some"}};
constexpr OldName kOldNames[] = {{"--chunks", "--microbatches"},
                                 {"--disk-limit", "--disk-bytes-max"}};

void add_training(CLI::App& command, Options& options, Typed& typed) {
  count(command, "--batch", options.batch, 1, 1 << 20, "Examples per step");
  count(command, "--microbatches", options.microbatches, 1, 1 << 20,
        "Cut each batch into so many micro-batches, with one backward each");
  count(command, "--steps", options.steps, 0, std::int64_t{1} << 40, "Train up to this step");
  count(command, "--seed", options.seed, 0, std::int64_t{1} << 62,
        "Seed of weights, data and dropout");
  command.add_option("--lr", options.learning_rate, "AdamW's learning rate")
      ->type_name("RATE")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  count(command, "--threads", options.threads, 0, 4096,
        "Number of compute threads; 0: LibTorch's choice");
  command.add_option("--device", typed.device, "cpu or cuda")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->capture_default_str();
}

void add_policy(CLI::App& command, Options& options, Typed& typed) {
  command.add_option("--policy", typed.policy, "keep, offload, checkpoint, offload-some or mixed")
      ->type_name("NAME")
      ->check(
          CLI::IsMember({"keep", "offload", "checkpoint", "offload-some", "mixed"}).description(""))
      ->capture_default_str();
  command
      .add_option(
          "--plan", options.plan,
          "A plan of `ferry plan`, for --policy offload-some or mixed; with --stages, one of "
          "`ferry plan --stages`")
      ->type_name("FILE");
  command.add_option("--disk", options.disk, "Offload to a file in this folder, not to memory")
      ->type_name("DIR");
  command.add_option("--disk-bytes-max", typed.disk_bytes_max, "The largest size of that file")
      ->type_name("SIZE");
  command.add_flag("--keep-when-full", options.keep_when_full,
                   "Keep tensors for which the file or the host has no room; otherwise an error");
  command
      .add_option("--window", typed.window, "The most bytes still on the device during copies out")
      ->type_name("SIZE");
  command.add_option("--prefetch", typed.prefetch, "The most bytes copied back before their use")
      ->type_name("SIZE");
  command.add_option("--min-bytes", typed.min_bytes, "Keep tensors that are smaller")
      ->type_name("SIZE");
}

void add_files(CLI::App& command, Options& options) {
  command.add_option("--save", options.save, "Write the training's state here at the end")
      ->type_name("FILE");
  count(command, "--save-every", options.save_every, 0, std::int64_t{1} << 40,
        "Also save after every N steps; 0: only at the end");
  command.add_option("--resume", options.resume, "Continue from a state that --save wrote")
      ->type_name("FILE");
  command.add_flag("--json", options.json, "Print one JSON line per step to stdout");
  command.add_option("--log", options.log, "Write the stream log here, for `ferry check`")
      ->type_name("FILE");
  command
      .add_option("--decisions", options.decisions,
                  "Write the decision log here, for `ferry replay`")
      ->type_name("FILE");
  command.add_option("--trace", options.trace, "Write a trace here, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      .add_option("--capture", options.capture,
                  "Write one step as a program here, for `ferry plan`, and stop")
      ->type_name("FILE");
  command.add_flag("--plain", options.plain,
                   "With --capture: make no checkpoints, so that a plan may recompute any operator "
                   "of the blocks");
}

bool planned(const Options& options) {
  return options.policy == PolicyKind::kOffloadSome || options.policy == PolicyKind::kMixed;
}

// With a plan or a capture every block is a checkpoint, unless the plan has spans of operators.
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
  const char* moving = "--policy offload, offload-some or mixed";
  needs("--disk", !options.disk.empty(), moves, moving);
  needs("--disk", !options.disk.empty(), !options.cuda, "--device cpu");
  needs("--disk-bytes-max", options.disk_bytes_max.has_value(), !options.disk.empty(), "--disk");
  needs("--keep-when-full", options.keep_when_full, moves, moving);
  // A plan has these values already.
  const bool free = moves && options.policy != PolicyKind::kOffloadSome && options.plan.empty();
  const char* freely = "--policy offload, or mixed without a plan";
  needs("--window", options.window.has_value(), free, freely);
  needs("--prefetch", options.prefetch.has_value(), free, freely);
  needs("--min-bytes", options.min_bytes.has_value(), free, freely);
  needs("--decisions", !options.decisions.empty(), moves, moving);
  needs("--trace", !options.trace.empty(), moves, moving);
  needs("--plan", !options.plan.empty(), planned(options) || staged,
        "--policy offload-some or mixed, or --stages N");
  needs("--policy", options.policy != PolicyKind::kKeep, !staged,
        "no plan for --stages, which has one for each stage");
  const bool trains =
      !options.save.empty() || !options.resume.empty() || !options.log.empty() || options.json;
  needs("--capture", !options.capture.empty(), options.policy == PolicyKind::kKeep && !trains,
        "no --policy, --save, --resume, --log or --json: it records one step and does "
        "not train");
  needs("--plain", options.plain, !options.capture.empty(), "--capture FILE");
  if (!std::isfinite(options.learning_rate)) throw InputError("--lr", 0, "expected a number");
  needs("--save-every", options.save_every > 0, !options.save.empty(), "--save");
  if (options.policy == PolicyKind::kOffloadSome && options.plan.empty()) {
    throw InputError("--policy offload-some", 0,
                     "expected with --plan FILE. Two commands make it: `ferry train ... "
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
  NewNames words = with_new_names({argv + std::min(argc, 1), argv + argc}, kOldNames, kOldValues);
  for (const std::string& note : words.notes) fmt::print(stderr, "ferry: {}\n", note);
  try {
    app.parse(std::vector<std::string>(words.words.rbegin(), words.words.rend()));
  } catch (const CLI::Success& asked) {  // --help or --version
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
    case PolicyKind::kOffloadSome:
      return "offload-some";
    case PolicyKind::kMixed:
      return "mixed";
  }
  return "";
}

}  // namespace ferry::real::train
