// Tries an overload's calls in all forms and ways, and says what became of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/real/sweep/calls.h"
#include "tests/real/sweep/variations.h"
#include "tests/real/sweep/ways.h"

namespace ferry::sweep {

// The worst that was met, from the best.
enum class Verdict : std::uint8_t {
  kNotCalled,          // no call ran to its end in plain
  kNotDifferentiable,  // no output requires a gradient
  kEqual,
  kUnstable,   // two plain runs differ
  kRefused,    // as ferry/selective.h says: an op writes to what it was told to keep
  kDifferent,  // in a bit, or raises where plain does not
};
const char* text(Verdict verdict);

struct Tried {
  Verdict verdict = Verdict::kNotCalled;
  std::string why;         // the first that made it this bad
  bool by_rule = false;    // `why` is that of a kind of overloads
  std::int64_t steps = 0;  // compared with plain
};

// The first of these that has a gradient; else the first that runs; none.
std::vector<Call> usable(const std::vector<Call>& drawn);

Tried try_overload(const std::vector<Call>& calls, const std::vector<Variation>& variations,
                   const std::vector<NamedWay>& ways);

}  // namespace ferry::sweep
