// A drawn test has a judge: a function of a seed, which says what is wrong where something is.
//
// A word in front says what kind of fault it is: "leak: something is left of a span".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ferry::test {

using Objection = std::optional<std::string>;  // none: nothing is wrong

// Returns what the judge says first, with its seed; nothing where it never objects.
template <class Judge>
std::string first_objection(const Judge& judge, std::uint64_t seeds = 300) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    if (const Objection objection = judge(seed)) {
      return "seed " + std::to_string(seed) + ": " + *objection;
    }
  }
  return "";
}

}  // namespace ferry::test
