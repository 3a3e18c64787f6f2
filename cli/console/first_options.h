// Commands with many options: `--help` lists those that are asked for first, `--help-all` all.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>

#include "cli/console/context.h"

namespace ferry::cli {

// To be called once all options of the command are there. `first`: names of some, as "--card".
inline void list_first(CLI::App& command, const Context& context,
                       std::initializer_list<const char*> first) {
  if (context.help_all) return;
  for (CLI::Option* option : command.get_options()) {
    const bool listed = std::any_of(first.begin(), first.end(), [option](const std::string& name) {
      return option->check_name(name);
    });
    if (!listed && !option->get_positional() && option != command.get_help_ptr()) {
      option->group("");  // CLI11 hides such a group
    }
  }
  command.footer("\n--help-all lists every option.\n" + command.get_footer());
}

}  // namespace ferry::cli
