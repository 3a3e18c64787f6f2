// The assertions of the core (shared/seam/invariant.h) as an oracle. It finds mutants that no other
// oracle finds.
//
// It is asked last, because the other oracles say more about a fault. A failed assertion on the
// thread that tries a program is recorded and the core continues, so the campaign goes on.
// Elsewhere it ends the process, as it does for users.
#pragma once

#include <optional>
#include <utility>

#include "shared/seam/invariant.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// While it lives, records the first assertion that fails on its thread. Watches nest: the innermost
// one records.
class InvariantWatch {
 public:
  InvariantWatch();
  InvariantWatch(const InvariantWatch&) = delete;
  InvariantWatch& operator=(const InvariantWatch&) = delete;
  ~InvariantWatch();

  // Returns nothing if no assertion failed.
  std::optional<Verdict> verdict() const;

 private:
  static void note(const BrokenInvariant& broken) noexcept;

  static thread_local InvariantWatch* innermost;
  InvariantWatch* const outer_ = std::exchange(innermost, this);
  std::optional<BrokenInvariant> first_;
};

// Returns the verdict of `attempt` or, if it has none, that of the first assertion that failed in
// it.
template <class Attempt>
std::optional<Verdict> asking_invariants(const Attempt& attempt) {
  const InvariantWatch watch;
  if (auto verdict = attempt()) return verdict;
  return watch.verdict();
}

}  // namespace ferry::verify
