// `ferry completion bash`: prints a script that completes the command line. The script is made from
// the same commands and options that parse the command line.
//
// bash expands the words that it can choose from, so names that are more than plain text to bash
// are left out. `ferry train`, `ferry verify` and others are separate programs: the script reads
// their options from their help when the user completes them. `ferry verify --complete OPTION`
// also prints the values of an option.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console/choices.h"

namespace ferry::cli {
namespace {

const std::vector<std::string> kShells = {"bash"};

// The part of the script that does not depend on the commands. bash splits --option=value into
// three words. `words` and `kind` are set by functions that come before this part: in bash, a
// function can set the local variables of its caller.
constexpr const char* kBody = R"bash(
_ferry_own_help() {  # COMMAND: prints the subcommands and options in its program's help
  local more=()
  ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[2]} != -* ]] && more=("${COMP_WORDS[2]}")
  "${COMP_WORDS[0]}" "$1" "${more[@]}" --help 2>/dev/null </dev/null |
    sed -nE '/^Subcommands:/,/^$/ s/^  ([a-z]+).*/\1/p; s/^  (-[a-z],)?(--[a-z-]+).*/\2/p'
}

_ferry() {
  local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command= words= kind= start= word
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || { command=$word && break; }
  done
  if _ferry_is_another_program "$command"; then
    [[ $command != verify || $before != -* ]] ||
      words=$("${COMP_WORDS[0]}" verify --complete "$before" 2>/dev/null </dev/null)
    if [[ -z $words ]]; then
      words=$(_ferry_own_help "$command")
      [[ $current == -* ]] || kind=file
    fi
  elif [[ $before == -* ]] && _ferry_value "$command $before"; then
    : # the words are values of the option before
  elif [[ -z $command || $current == -* ]]; then
    _ferry_options "$command"
  else
    _ferry_value "$command"
  fi
  if [[ $kind == list && $current == *,* ]]; then
    start=${current%,*}, current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(
    compgen -P "$start" -W "$words" -- "$current"
    [[ $kind != file ]] || compgen -f -- "$current"
    [[ $kind != folder ]] || compgen -d -- "$current"
  )
  [[ $kind != file && $kind != folder ]] || compopt -o filenames 2>/dev/null
}
complete -F _ferry ferry
)bash";

// True if the name is plain text to bash.
bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
  });
}

std::string words_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (is_plain(name)) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

// Returns the option's names as the user types them. A positional has one empty name.
std::vector<std::string> spellings(const CLI::Option& option) {
  if (option.get_positional()) return {""};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    for (std::string& name : spellings(*option)) names.push_back(std::move(name));
  }
  return names;
}

// Returns the case of `_ferry_value` for an option that takes a value; empty for other options.
std::string value_case(const CLI::App& command, const CLI::Option& option, const Context& context) {
  if (option.get_items_expected_max() == 0) return "";
  std::string patterns;
  for (const std::string& spelling : spellings(option)) {
    patterns += fmt::format("{}'{}{}{}'", patterns.empty() ? "" : " | ", command.get_name(),
                            spelling.empty() ? "" : " ", spelling);
  }
  Values values;
  const auto known = context.values.find(&option);
  if (known != context.values.end()) values = known->second();
  const std::string type = option.get_type_name();  // followed by a colon and its checks
  if (type.starts_with("FILE")) values.or_file = true;
  const char* kind = type.starts_with("DIR")       ? "folder"
                     : values.or_file              ? "file"
                     : option.get_delimiter() != 0 ? "list"
                                                   : "";
  return fmt::format("    {}) kind={} words='{}' ;;\n", patterns, kind, words_of(values.names));
}

std::string script(const CLI::App& app, const Context& context) {
  std::vector<std::string> words = options_of(app);
  std::string options, values, others;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
    if (command->get_prefix_command()) {
      others += (others.empty() ? "" : " | ") + command->get_name();
      continue;
    }
    options +=
        fmt::format("    {}) words='{}' ;;\n", command->get_name(), words_of(options_of(*command)));
    for (const CLI::Option* option : command->get_options())
      values += value_case(*command, *option, context);
  }
  return fmt::format(
      "# Completes ferry's command line in bash: source <(ferry completion bash)\n\n"
      "_ferry_is_another_program() {{\n  case $1 in\n    {}) return 0 ;;\n"
      "    *) return 1 ;;\n  esac\n}}\n\n"
      "_ferry_options() {{  # COMMAND: its options; without one, the commands\n  case $1 in\n"
      "    '') words='{}' ;;\n{}  esac\n}}\n\n"
      "_ferry_value() {{  # COMMAND OPTION, or COMMAND: its values; fails if none\n  case $1 in\n"
      "{}    *) return 1 ;;\n  esac\n}}\n{}",
      others, words_of(words), options, values, kBody);
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script for completion in a shell");
  command->group("Shell");
  command->footer(R"(
Examples:
  ferry completion bash   print the script; in ~/.bashrc: source <(ferry completion bash))");
  CLI::Option* name = command->add_option("shell", *shell, "The shell: bash")->required();
  context.values[name] = [] { return Values{kShells}; };
  command->callback([&app, &context, shell] {
    choice("shell", *shell, kShells);
    const std::string text = script(app, context);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace ferry::cli
