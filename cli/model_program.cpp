#include "cli/model_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/console/ended.h"
#include "cli/console/messages.h"
#include "cli/console/stop.h"
#include "formats/error.h"
#include "formats/program_file.h"

namespace ferry::cli {
namespace {

// What Python itself exits with if it does not find the module.
constexpr int kNoModule = 1;
constexpr const char* kScript = ".py";
constexpr const char* kPrefixes[] = {"hf:", "torchvision:", "timm:"};

// Returns the folder that has the package ferry_command: beside the program in a build, and two
// folders above it in an installation. Empty if there is none; the interpreter may know one.
std::string packages() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const std::filesystem::path& folder : {here / "python", here.parent_path().parent_path()}) {
    if (std::filesystem::exists(folder / "ferry_command")) return folder.string();
  }
  return {};
}

// A script or a function of a file may depend on anything, so it is captured each time.
bool is_file_of_python(const std::string& subject) {
  return subject.ends_with(kScript) || subject.find(".py:") != std::string::npos;
}

bool begins_as_program(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.starts_with(R"({"ferry":)");
}

std::vector<std::pair<const char*, bool>> flags_of(const ModelArguments& arguments) {
  return {{"--checkpointing", arguments.checkpointing},
          {"--sft", arguments.sft},
          {"--dpo", arguments.dpo},
          {"--trust", arguments.trust}};
}

std::vector<std::string> words_of(const std::string& subject, const ModelArguments& arguments,
                                  const Hardware& hardware) {
  const char* const named = std::getenv("FERRY_PYTHON");
  std::vector<std::string> words = {named != nullptr ? named : "python3", "-m",
                                    "ferry_command.model"};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  const auto number = [](std::int64_t value) { return value > 0 ? std::to_string(value) : ""; };
  add("--tokens", number(arguments.tokens));
  add("--batch", number(arguments.batch));
  add("--dtype", arguments.dtype);
  add("--attention", arguments.attention);
  add("--lora", arguments.lora);
  add("--qlora", arguments.qlora);
  if (const std::int64_t tenths = hardware.compute_capability; tenths > 0) {
    add("--capability", fmt::format("{}.{}", tenths / 10, tenths % 10));
  }
  for (const auto& [option, is_typed] : flags_of(arguments)) {
    if (is_typed) words.emplace_back(option);
  }
  words.insert(words.end(), {"--", subject});
  words.insert(words.end(), arguments.script.begin(), arguments.script.end());
  return words;
}

// Runs a program and returns what it printed and its wait status. Its messages go to stderr, or
// nowhere if `quiet`.
std::pair<std::string, int> output_of(std::vector<std::string> words, bool quiet) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (quiet) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    throw std::system_error(failed, std::generic_category(), "cannot run " + words.front());
  }
  std::string printed;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = ::read(ends[0], block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;  // Ctrl-C, which the child gets too
    if (count <= 0) break;
    printed.append(block.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {printed, status};
}

}  // namespace

void add_model_options(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option("--tokens", arguments.tokens,
                  "Of a model: tokens in a sequence (default: 2048, or fewer if it takes fewer); "
                  "for images their height and width")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--batch", arguments.batch, "Of a model: sequences in a batch (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--lora", arguments.lora,
                  "Of a model: train adapters of this rank, on all linear layers but the output "
                  "head, or on those named after it: 16,q_proj,v_proj")
      ->type_name("RANK[,NAME...]");
  command
      .add_option("--dtype", arguments.dtype,
                  "Of a model: dtype of the weights (default: as its configuration says)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}));
  command
      .add_option("--attention", arguments.attention,
                  "Of a model: sdpa, eager, or another implementation that transformers has")
      ->type_name("NAME");
  command
      .add_option("--qlora", arguments.qlora,
                  "Of a model: as --lora, on weights that bitsandbytes keeps in four bits (NF4)")
      ->type_name("RANK[,NAME...]")
      ->excludes("--lora");
  command.add_flag("--checkpointing", arguments.checkpointing,
                   "Of a model: each layer is checkpointed, as by gradient_checkpointing=True");
  command.add_flag("--sft", arguments.sft,
                   "Of a model: the step of TRL's SFTTrainer with its defaults, which are bf16 "
                   "autocast and checkpointed layers");
  command
      .add_flag("--dpo", arguments.dpo,
                "Of a model: the step of TRL's DPOTrainer with its defaults; --batch counts pairs")
      ->excludes("--sft");
  command.add_flag("--trust", arguments.trust,
                   "Of a model of the hub: run the code that its repository has");
  command
      .add_option("arguments", arguments.script,
                  "The arguments of a script, after --: train.py --card h100 -- --epochs 3")
      ->type_name("ARG");
}

bool is_model(const std::string& subject) {
  if (subject.ends_with(".json")) return !begins_as_program(subject);
  const bool is_named = std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                                    [&](const char* each) { return subject.starts_with(each); });
  return is_named || is_file_of_python(subject) ||
         std::filesystem::is_regular_file(std::filesystem::path(subject) / "model_index.json");
}

bool is_configuration(const std::string& subject) {
  return subject.starts_with("hf:") || (subject.ends_with(".json") && is_model(subject));
}

void refuse_model_options(const std::string& subject, const ModelArguments& arguments) {
  std::vector<std::pair<const char*, bool>> typed = {
      {"--tokens", arguments.tokens != 0},   {"--batch", arguments.batch != 0},
      {"--lora", !arguments.lora.empty()},   {"--qlora", !arguments.qlora.empty()},
      {"--dtype", !arguments.dtype.empty()}, {"--attention", !arguments.attention.empty()}};
  const auto flags = flags_of(arguments);
  typed.insert(typed.end(), flags.begin(), flags.end());
  for (const auto& [option, is_typed] : typed) {
    if (!is_typed) continue;
    throw InputError(option, 0,
                     "expected a model (hf:ORG/NAME or a config.json); " + subject +
                         " is a captured step, whose batch and weights are fixed");
  }
  if (!arguments.script.empty()) {
    throw InputError(arguments.script.front(), 0,
                     "expected one program; only a script (.py) takes arguments");
  }
}

Program model_program(const std::string& subject, const ModelArguments& arguments,
                      const Hardware& hardware) {
  if (std::string folder = packages(); !folder.empty()) {
    if (const char* const others = std::getenv("PYTHONPATH")) folder.append(":").append(others);
    ::setenv("PYTHONPATH", folder.c_str(), 1);
  }
  auto [path, status] = output_of(words_of(subject, arguments, hardware), arguments.quiet);
  if (is_stopped()) throw Ended(told_stopped("no step: the model was being captured"));
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kStoppedBase + WTERMSIG(status);
  if (code == kNoModule && !arguments.quiet) {
    tell(
        "{}: a model needs Ferry's Python package: pip install torch_ferry, or name a Python that "
        "has it by FERRY_PYTHON",
        subject);
  }
  if (code == kNoModule) throw Ended(kResourceMissing);
  if (code != 0) throw Ended(code);
  while (path.ends_with('\n')) path.pop_back();
  Program program = load_program(path);
  if (is_file_of_python(subject)) std::filesystem::remove(path);
  return program;
}

}  // namespace ferry::cli
