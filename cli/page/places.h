// Which module of the model the lines of a program's file belong to, for people: "model.layers.3".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "formats/program.h"

namespace ferry::cli {

class Places {
 public:
  explicit Places(const Program& program);

  // The innermost module around the line's statement, or the one whose parameter or buffer it
  // declares. Where there is none, words in parentheses, which no module's name has.
  const std::string& module_of(std::uint32_t line) const;

 private:
  std::map<std::uint32_t, std::string> modules_;  // by line
};

}  // namespace ferry::cli
