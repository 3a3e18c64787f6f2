// Commands with many options: `--help` lists those that are asked for first, `--help-all` all.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>

#include "cli/console/context.h"

namespace ferry::cli {

// To be called once all options of the command are there. `first`: names of some, as "--card".
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

// To be called before help is printed, and not earlier: an option that CLI11 hides has no name in
// its errors.
inline void hide_further(const Context& context) {
  for (CLI::Option* option : context.further) option->group("");
}

}  // namespace ferry::cli
