// What a fuzz target asks of every input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/error.h"

namespace ferry::fuzz {

inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: violated: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// A refusal names the file and a line of it, or the one behind its end (0: the file as a whole).
inline void require_place(const InputError& error, const std::string& file, std::string_view text) {
  const auto ends = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  require(error.file() == file, "a refusal names the file");
  require(error.line() <= ends + 1, "a refusal names a line of the file");
  require(std::string_view(error.what()).starts_with(file), "a refusal begins with the file");
}

}  // namespace ferry::fuzz
