// Finds the module of the model ("model.layers.3") that a line of a program's file belongs to, so
// that the page of `ferry report` shows memory and work by module.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "formats/program.h"

namespace ferry::cli {

class Places {
 public:
  explicit Places(const Program& program);

  // Returns the innermost module around the line's statement, or the module whose parameter or
  // buffer the line declares. If there is none, returns a text in parentheses, such as
  // "(outside all modules)"; no module's name has parentheses.
  const std::string& module_of(std::uint32_t line) const;

 private:
  std::map<std::uint32_t, std::string> modules_;  // by line
};

}  // namespace ferry::cli
