// The `ferry` program: reads the command line, runs one subcommand, turns errors into exit codes.
// Adding a subcommand: a file with its add_NAME, a line in context.h, a line in kSubcommands.
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/context.h"
#include "formats/error.h"
#include "formats/nearest.h"
#include "formats/printable.h"

namespace {

using namespace ferry::cli;

using AddSubcommand = void (*)(CLI::App&, Context&);

#if FERRY_HAS_VERIFY
constexpr AddSubcommand kAddVerify = add_verify;
#else
constexpr AddSubcommand kAddVerify = add_no_verify;
#endif

// Sorted as in the help.
constexpr AddSubcommand kSubcommands[] = {
    add_plan,   add_report, add_sweep, add_simulate, add_train,    add_run,        add_calibrate,
    add_replay, kAddVerify, add_check, add_programs, add_hardware, add_completion,
};

// Each command's help has more of its own.
constexpr const char* kFooter = R"(
Examples:
  ferry plan llama3-8b --hardware h100   the table of policies, each simulated and checked
  ferry train gpt --policy offload       a GPT learns, its activations offloaded
  ferry verify --seconds 60              the core on random programs, every oracle watching
  ferry check run.jsonl                  races in the log of any program's streams
  ferry COMMAND --help                   more of them, and every option

A NAME is a shipped thing's or a path of your own. FERRY_SCENARIOS: where what ships is looked for.
Exit codes: 0 ok, 1 a property is violated, 2 usage or bad input, 3 does not fit,
6 simulated and real differ, 7 a resource is missing, 70 an internal error, 130 stopped by Ctrl-C.)";

// Makes a message printable: names come from files that anybody may have written, and control
// characters in them could act on the terminal.
class Printable final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& into) override {
    const std::string text = ferry::printable({message.payload.data(), message.payload.size()});
    into.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Printable>();
  }
};

int complain(const std::string& message, int code) {
  spdlog::error("{}", message);
  return code;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11's message, with the likely intention added: for a mistyped command CLI11 only says that one
// is required, for a mistyped option that it did not expect it.
std::string meaning(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  const auto subcommands = app.get_subcommands();
  const std::string typed = argc > 1 ? argv[1] : "";
  if (subcommands.empty() && !typed.empty() && typed.front() != '-') {
    return "there is no command '" + typed + "'" + ferry::did_you_mean(typed, commands_of(app)) +
           " (ferry --help)";
  }
  const CLI::App& command = subcommands.empty() ? app : *subcommands.front();
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> known = options_of(command);
    for (int i = 1; i < argc; ++i) {
      std::string option = argv[i];
      option.resize(std::min(option.find('='), option.size()));
      const bool is_known = std::find(known.begin(), known.end(), option) != known.end();
      const std::string question = ferry::did_you_mean(option, known);
      if (!option.starts_with("--") || is_known || question.empty()) continue;
      text = "there is no option '" + option + "'" + question;
      break;
    }
  }
  return text +
         (subcommands.empty() ? " (ferry --help)" : " (ferry " + command.get_name() + " --help)");
}

int run(int argc, char** argv) {
  CLI::App app("Plans activation offload, and simulates it with its stream order checked.",
               "ferry");
  app.set_version_flag("--version", "ferry " FERRY_VERSION);
  app.require_subcommand(1);
  Context context;
  for (const AddSubcommand add : kSubcommands) add(app, context);
  app.footer(kFooter);  // printed after the commands: before, it would be taken for theirs
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help and --version
    app.exit(asked);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(meaning(error, app, argc, argv), kUsage);
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto log = spdlog::stderr_logger_mt("ferry");
  auto pattern = std::make_unique<spdlog::pattern_formatter>();
  pattern->add_flag<Printable>('*').set_pattern("ferry: %*");
  log->set_formatter(std::move(pattern));
  spdlog::set_default_logger(log);
  try {
    const int code = run(argc, argv);
    // A result that did not reach its file is no result (a full disk, a closed pipe).
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return complain("cannot write to stdout", kResourceMissing);
    }
    return code;
  } catch (const ferry::InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::LimitReached& error) {
    return complain(error.what(), kDoesNotFit);
  } catch (const std::system_error& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const std::bad_alloc&) {
    return complain("out of memory: this machine's, not a simulated card's", kDoesNotFit);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), kInternal);
  }
}
