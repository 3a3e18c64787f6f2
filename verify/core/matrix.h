// The mutation matrix, for `ferry verify --mutants`: for each mutant of the core, the oracle that
// kills it, the number of programs that this takes, and the size of the smallest counterexample; or
// the unit test that kills it. A mutant that nothing kills shows that the oracles miss something.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "verify/campaign/run_spec.h"
#include "verify/mutants/mutants.h"

namespace ferry::verify {

struct MatrixOptions {
  std::uint64_t seed = 0;
  std::int64_t programs = 60'000;  // the maximum for each mutant
  int jobs = 1;
  std::function<void(const Mutant& done)> progress;  // may run on any thread, one call at a time
  std::function<bool()> stop;  // called on every thread; true: unfinished rows are left out
};

struct MatrixRow {
  Mutant mutant;
  std::optional<Oracle> oracle;                    // the oracle that killed it
  bool killed_by_own_case = false;                 // no oracle takes part
  std::string test;                                // unit test that kills it; not run here
  std::int64_t tests = 0;                          // number of programs that it took
  std::optional<std::int64_t> counterexample_ops;  // device operations; none: a special case
  std::string replay;                              // replay line of the counterexample
  bool unconfirmed = false;  // a race for which no order of the device shows a wrong value

  bool killed() const { return oracle.has_value() || killed_by_own_case || !test.empty(); }
  // Returns the text for the table; empty if the mutant survived.
  std::string killed_by() const {
    if (!test.empty()) return "a test: " + test;
    if (killed_by_own_case) return "a special case";
    return oracle ? std::string(name(*oracle)) : "";
  }

  // Returns true if something is wrong: the mutant survived, or its report could not be confirmed.
  bool wrong() const { return !killed() || unconfirmed; }
};

// Returns the rows in the order of `mutants`. Some are missing if it was stopped.
std::vector<MatrixRow> mutation_matrix(const std::vector<Mutant>& mutants,
                                       const MatrixOptions& options);

}  // namespace ferry::verify
