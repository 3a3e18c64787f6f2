// The mutation matrix shows which oracle kills each mutant of the core, after how many programs,
// and how small a program shows it; or which unit test kills it.
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
  std::int64_t programs = 60'000;  // at most, of each mutant
  int jobs = 1;
  std::function<void(const Mutant& done)> progress;  // from any thread, one at a time
  std::function<bool()> stop;  // on every thread: true leaves out the rows that are not ready
};

struct MatrixRow {
  Mutant mutant;
  std::optional<Oracle> oracle;                    // the one that killed it
  bool killed_by_own_case = false;                 // in which no oracle takes part
  std::string test;                                // the unit test that kills it; it does not run
  std::int64_t tests = 0;                          // that it took
  std::optional<std::int64_t> counterexample_ops;  // device operations; none: a case of its own
  std::string replay;                              // the counterexample
  bool unconfirmed = false;  // a race of which no schedule shows another value

  bool killed() const { return oracle.has_value() || killed_by_own_case || !test.empty(); }
  // Returns what the table says of that; empty where the mutant survived.
  std::string killed_by() const {
    if (!test.empty()) return "a test: " + test;
    if (killed_by_own_case) return "a case of its own";
    return oracle ? std::string(name(*oracle)) : "";
  }

  // Whether it is not as it should be: it survived, or a report of it is not true.
  bool wrong() const { return !killed() || unconfirmed; }
};

// Returns the rows in the order of `mutants`; some are missing where it was stopped.
std::vector<MatrixRow> mutation_matrix(const std::vector<Mutant>& mutants,
                                       const MatrixOptions& options);

}  // namespace ferry::verify
