#include "cli/console/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/console/ended.h"
#include "cli/console/first_options.h"
#include "cli/console/messages.h"
#include "formats/error.h"
#include "formats/nearest.h"

namespace ferry::cli {
namespace {

int complain(const std::string& message, int code) {
  tell(message);
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

// Returns CLI11's message with a suggestion. Alone, CLI11 says for a mistyped command only that a
// command is required, and for a mistyped option only that it was not expected.
std::string meaning(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  const auto subcommands = app.get_subcommands();
  const std::string typed = argc > 1 ? argv[1] : "";
  if (subcommands.empty() && !typed.empty() && typed.front() != '-') {
    return "there is no command '" + typed + "'" + did_you_mean(typed, commands_of(app)) +
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
      const std::string question = did_you_mean(option, known);
      if (!option.starts_with("--") || is_known || question.empty()) continue;
      text = "there is no option '" + option + "'" + question;
      break;
    }
  }
  return text +
         (subcommands.empty() ? " (ferry --help)" : " (ferry " + command.get_name() + " --help)");
}

// Returns the command line with old names of options replaced, and prints a note about each.
std::vector<std::string> typed_words(int argc, char** argv, const Program& program) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const auto& commands = program.with_old_names;
  if (words.empty() || std::find(commands.begin(), commands.end(), words[0]) == commands.end()) {
    return words;
  }
  NewNames found = with_new_names(std::move(words), program.old_names, program.old_values);
  for (const std::string& note : found.notes) tell(note);
  return found.words;
}

int parse_and_run(int argc, char** argv, const Program& program) {
  CLI::App app("Plans, simulates and checks offload and recompute of saved activations.", "ferry");
  app.set_version_flag("--version", std::string("ferry ") + program.version);
  app.require_subcommand(1);
  Context context;
  context.typed = typed_words(argc, argv, program);
  for (const AddSubcommand add : program.subcommands) add(app, context);
  app.footer(program.footer);  // set last, because a command inherits the footer that it finds
  try {
    app.parse(std::vector<std::string>(context.typed.rbegin(), context.typed.rend()));
  } catch (const CLI::Success& asked) {  // --help, --help-all and --version
    if (asked.get_name() == "CallForHelp") hide_further(context);
    app.exit(asked);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(meaning(error, app, argc, argv), kUsage);
  }
  return context.exit_code;
}

// Prints the allowed values of an option of the program's one subcommand.
int print_values(const std::string& option, const Program& program) {
  CLI::App app;
  Context context;
  for (const AddSubcommand add : program.subcommands) add(app, context);
  for (const auto& [known, values] : context.values) {
    if (!known->check_name(option)) continue;
    for (const std::string& name : values().names) std::puts(name.c_str());
  }
  return kOk;
}

int guarded(const std::function<int()>& run) {
  try {
    const int code = run();
    // A result that was not written completely is an error (a full disk, a closed pipe).
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return complain("cannot write to stdout", kResourceMissing);
    }
    return code;
  } catch (const Ended& ended) {
    return ended.code();
  } catch (const InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const LimitReached& error) {
    return complain(error.what(), kDoesNotFit);
  } catch (const std::system_error& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const std::bad_alloc&) {
    return complain("this machine (not the simulated card) is out of memory", kDoesNotFit);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), kInternal);
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  return guarded([&] { return parse_and_run(argc, argv, program); });
}

int run_sibling(int argc, char** argv, const char* name, const Program& program) {
  return guarded([&] {
    if (argc == 3 && std::string(argv[1]) == "--complete") return print_values(argv[2], program);
    std::string command = name;
    std::vector<char*> words = {argv[0], command.data()};
    words.insert(words.end(), argv + 1, argv + argc);
    words.push_back(nullptr);
    return parse_and_run(static_cast<int>(words.size()) - 1, words.data(), program);
  });
}

}  // namespace ferry::cli
