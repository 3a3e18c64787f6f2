// Adds an option whose value is an integer within bounds, for the command line of `ferry train`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace ferry::real::train {

inline CLI::Option* count(CLI::App& command, const char* option, std::int64_t& value,
                          std::int64_t least, std::int64_t most, const char* text) {
  return command.add_option(option, value, text)
      ->type_name("N")
      ->check(CLI::Range(least, most))
      ->capture_default_str();
}

}  // namespace ferry::real::train
