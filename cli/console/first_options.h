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
  for (CLI::Option* option : command.get_options()) {
    const bool listed = std::any_of(first.begin(), first.end(), [option](const std::string& name) {
      return option->check_name(name);
    });
    if (!listed && !option->get_positional() && option != command.get_help_ptr()) {
      context.further.push_back(option);
    }
  }
  if (!context.help_all)
    command.footer("\n--help-all lists every option.\n" + command.get_footer());
}

// To be called before help is printed: an option that CLI11 hides has no name in its errors.
inline void hide_further(const Context& context) {
  if (context.help_all) return;
  for (CLI::Option* option : context.further) option->group("");
}

}  // namespace ferry::cli
