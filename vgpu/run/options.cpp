#include "vgpu/run/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "formats/error.h"
#include "formats/nearest.h"
#include "formats/old_names.h"
#include "scenarios/paths.h"

namespace ferry::vgpu {
namespace {

constexpr const char* kFooter = R"(
SCRIPT is a Python program that uses PyTorch's CUDA (or -m MODULE, or -c CODE). It runs on this
machine's CPU, on an emulated GPU: values are the CPU's, memory is as much as the card has, and time
is simulated. At its end the log of its streams is judged, as by `ferry check`.

Examples:
  ferry run train.py --steps 3            on an h100
  ferry run --card rtx4090 train.py       out of memory where that card is
  ferry run --cards 4 pipeline.py         four of them
  ferry run --card h100,rtx4090 --policy keep,offload,checkpoint --no-values train.py
                                          one table of six runs: memory, time, what fits
  ferry run --no-values train.py          memory and time of a large model, in seconds
  ferry run --side-first train.py         side streams run ahead of the default one
  ferry run --seeds 20 train.py           twenty runs, each with a random schedule
  ferry run --log run.jsonl train.py      keep the log of its streams
  ferry run --sarif run.sarif train.py    the races, for editors and code hosts
  ferry run -m package.train              a module, as `python -m` runs it
  torchrun --nproc-per-node 2 --no-python ferry run train.py
                                          a launcher starts a run for each rank

Exit codes: the script's own, if it is not 0; 1 a race was found; 2 usage; 7 no PyTorch, or a real
GPU is there; 8 not judged. The last line says what was judged, however the run ends.)";

constexpr int kMostCards = 8;  // the runtime's limit (vgpu/runtime/settings.h)
constexpr int kMostSeeds = 100'000;

// Options end where the script stands. Everything after it belongs to the script.
std::vector<std::string> script_of(const std::vector<std::string>& rest, const CLI::App& app) {
  if (rest.empty()) throw InputError("ferry run", 0, "expected a script (ferry run --help)");
  const std::string& path = rest.front();
  if (path == "-m" || path == "-c") {
    if (rest.size() > 1) return rest;
    throw InputError(
        "ferry run", 0,
        "expected " + std::string(path == "-m" ? "a module" : "code") + " after '" + path + "'");
  }
  if (path.starts_with("-")) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    throw InputError("ferry run", 0,
                     "there is no option '" + path + "'" + did_you_mean(path, known) +
                         "; the script's own options come after the script (ferry run --help)");
  }
  if (!std::filesystem::is_regular_file(path)) {
    throw InputError(path, 0, "expected a Python script: there is no such file");
  }
  return rest;
}

// Returns "keep" or another policy's name, or the absolute path of a plan's file, which the
// script's process finds from any folder.
std::string policy_of(const std::string& word) {
  if (std::ranges::find(kPolicies, word) != std::end(kPolicies)) return word;
  if (std::filesystem::is_regular_file(word)) return std::filesystem::absolute(word).string();
  const std::vector<std::string> known(std::begin(kPolicies), std::end(kPolicies));
  std::string names;
  for (const std::string& name : known) names += name + ", ";
  throw InputError("--policy", 0,
                   "expected " + names + "or the file of a plan; got '" + word + "'" +
                       did_you_mean(word, known));
}

Card card_of(const std::string& word) {
  const std::string file =
      std::filesystem::absolute(find_shipped("hardware", "hardware", ".toml", word)).string();
  return {read_hardware(file), file};
}

// If there are several runs, rejects the options whose file can hold only one.
void check_comparison(const Options& options) {
  if (options.settings().size() == 1) return;
  for (const auto& [option, file] : {std::pair("--log", &options.log),
                                     {"--trace", &options.trace},
                                     {"--snapshot", &options.snapshot},
                                     {"--sarif", &options.sarif}}) {
    if (file->empty()) continue;
    throw InputError(option, 0,
                     "expected with one card, policy, allocator setting and seed: the file holds "
                     "one run, and the number of runs is " +
                         std::to_string(options.settings().size()));
  }
}

// Adds the options that make a setting. Some may have several values, with a run for each.
void add_settings(CLI::App& app, Options& options, std::vector<std::string>& cards) {
  app.add_option("--card", cards, "The card: a shipped name, or a .toml file")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--hardware", cards)->group("")->delimiter(',')->allow_extra_args(false);
  app.add_option("--cards", options.card_count, "The number of such cards, from cuda:0 on")
      ->type_name("N")
      ->check(CLI::Range(1, kMostCards));
  app.add_option("--policy", options.policies,
                 "What to put around the script's models: keep, offload, checkpoint, "
                 "checkpoint-offload, compile, compile-offload, compile-checkpoint, or the file of "
                 "a plan")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--alloc-conf", options.allocators,
                 "A value for PYTORCH_CUDA_ALLOC_CONF; repeat it for another run")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_flag("--segments-go-up", options.segments_go_up,
               "Place allocator segments at increasing addresses (real drivers use decreasing)");
}

// Adds the options for the files that a run leaves.
void add_files(CLI::App& app, Options& options) {
  app.add_option("--log", options.log, "Keep the log of its streams here")->type_name("FILE");
  app.add_option("--trace", options.trace, "What the streams did and when, for ui.perfetto.dev")
      ->type_name("FILE");
  app.add_option(
         "--snapshot", options.snapshot,
         "PyTorch's memory snapshot of the run, for torch.cuda._memory_viz and `ferry replay`")
      ->type_name("FILE");
  app.add_option("--json", options.json, "The verdict, in the form of `ferry check --json`")
      ->type_name("FILE");
  app.add_option("--sarif", options.sarif, "The verdict, as SARIF 2.1.0")->type_name("FILE");
}

}  // namespace

std::vector<Setting> Options::settings() const {
  std::vector<Setting> all;
  for (const Card& card : cards) {
    for (const std::string& allocator : allocators) {
      for (const std::string& policy : policies) {
        for (std::uint64_t i = 0; i < seeds; ++i)
          all.push_back({&card, policy, allocator, seed + i});
      }
    }
  }
  return all;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  std::vector<std::string> cards = {"h100"};
  bool eager = false;
  bool side_first = false;
  bool main_first = false;
  bool without_values = false;
  bool zeros = false;
  CLI::App app("Runs a PyTorch CUDA program without a GPU, and judges its streams.", "ferry run");
  app.footer(kFooter);
  app.set_version_flag("--version", "ferry-run " FERRY_VERSION);
  app.prefix_command();
  add_settings(app, options, cards);
  CLI::Option* seed =
      app.add_option("--seed", options.seed, "Seed of a random stream schedule")->type_name("N");
  CLI::Option* seeds =
      app.add_option("--seeds", options.seeds, "The number of runs, with seeds from --seed (or 0)")
          ->type_name("N")
          ->check(CLI::Range(1, kMostSeeds));
  CLI::Option* side =
      app.add_flag("--side-first", side_first, "Side streams run ahead, the default one late");
  CLI::Option* main =
      app.add_flag("--main-first", main_first, "The default stream runs ahead, the others late");
  CLI::Option* at_once = app.add_flag("--eager", eager, "All work runs at once");
  side->excludes(main)->excludes(at_once);
  main->excludes(at_once);
  for (CLI::Option* schedule : {side, main, at_once}) {
    seed->excludes(schedule);
    seeds->excludes(schedule);
  }
  CLI::Option* no_values = app.add_flag(
      "--no-values", without_values, "Compute nothing: memory, streams and time of large models");
  app.add_flag("--zeros", zeros, "What the script reads back is 0, instead of an error")
      ->needs(no_values);
  add_files(app, options);
  if (const char* python = std::getenv("FERRY_PYTHON")) options.python = python;  // by the wheel
  app.add_option("--python", options.python, "The Python interpreter")->type_name("PATH");
  app.add_flag("--require-judged", options.requires_judged,
               "Exit with 8 if not everything was judged: CUDA was not used, a child process "
               "asked for a device, or NumPy used page-locked memory unseen");
  app.add_flag("--hide-gpu", options.hide_gpu, "Use the virtual GPU even if there is a real one");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError("ferry run", 0, std::string(error.what()) + " (ferry run --help)");
  }
  constexpr OldName kOldName[] = {{"--hardware", "--card"}};
  if (app.count("--hardware") > 0) {
    for (const std::string& note : with_new_names({"--hardware"}, kOldName).notes) {
      std::fputs(("ferry run: " + note + "\n").c_str(), stderr);
    }
  }
  options.script = script_of(app.remaining(), app);
  for (const std::string& card : cards) options.cards.push_back(card_of(card));
  for (std::string& policy : options.policies) policy = policy_of(policy);
  check_comparison(options);
  // kMixed, because streams seldom get far apart if each runs at random at every call (kRandom).
  if (seed->count() + seeds->count() > 0) options.schedule = Schedule::kMixed;
  if (without_values) {
    options.values = zeros ? ComputedValues::kZeros : ComputedValues::kRefused;
  }
  if (eager) options.schedule = Schedule::kEager;
  if (side_first) options.schedule = Schedule::kSideFirst;
  if (main_first) options.schedule = Schedule::kMainFirst;
  options.timed = options.schedule == Schedule::kRandom;
  return options;
}

}  // namespace ferry::vgpu
