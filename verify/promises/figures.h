// A table of figures: what each is, and what it must be.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "verify/oracles/verdict.h"

namespace ferry::verify {

struct Figure {
  const char* name;
  std::int64_t is, must;
};

template <class Value>
std::int64_t number(Value value) {
  return static_cast<std::int64_t>(value);
}

// Returns the first that is wrong, "of which" the words say.
inline std::optional<Verdict> first_wrong(Oracle oracle, const std::string& of,
                                          std::initializer_list<Figure> figures) {
  for (const Figure& each : figures) {
    if (each.is == each.must) continue;
    return Verdict{oracle, of + " " + each.name + " is " + std::to_string(each.is) + ", not " +
                               std::to_string(each.must)};
  }
  return std::nullopt;
}

}  // namespace ferry::verify
