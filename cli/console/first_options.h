// For commands with many options: `--help` lists the most common ones, `--help-all` lists all.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>

#include "cli/console/context.h"

namespace ferry::cli {

// Adds --help-all. Call it after all options were added. `first` has the names of the options that
// --help lists, such as "--card".
inline void list_first(CLI::App& command, Context& context,
                       std::initializer_list<const char*> first) {
  command.set_help_all_flag("--help-all", "Print every option and exit");
  for (CLI::Option* option : command.get_options()) {
    const bool listed = std::any_of(first.begin(), first.end(), [option](const std::string& name) {
      return option->check_name(name);
    });
    const bool is_help = option == command.get_help_ptr() || option == command.get_help_all_ptr();
    if (!listed && !is_help && !option->get_positional()) context.further.push_back(option);
  }
}

// Hides the other options. Call it just before help is printed: CLI11's error messages do not name
// an option that is hidden.
inline void hide_further(const Context& context) {
  for (CLI::Option* option : context.further) option->group("");
}

}  // namespace ferry::cli
