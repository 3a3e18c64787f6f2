// The invariants that the core asserts (shared/seam/invariant.h), as an oracle: a mutant that
// breaks one is told from the core by it, where nothing else tells them apart.
//
// It is asked last, for it says less of what comes of a fault than the others do. What breaks on
// the calling thread while a call is tried is noted, and the core goes on, so that the campaign
// does; whatever is not tried here ends the process, as it does for users.
#pragma once

#include <optional>
#include <utility>

#include "shared/seam/invariant.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// While it lives, notes the first invariant that breaks on the thread that made it. They nest: the
// innermost one notes.
class InvariantWatch {
 public:
  InvariantWatch();
  InvariantWatch(const InvariantWatch&) = delete;
  InvariantWatch& operator=(const InvariantWatch&) = delete;
  ~InvariantWatch();

  // None: nothing broke.
  std::optional<Verdict> verdict() const;

 private:
  static void note(const BrokenInvariant& broken) noexcept;

  static thread_local InvariantWatch* innermost;
  InvariantWatch* const outer_ = std::exchange(innermost, this);
  std::optional<BrokenInvariant> first_;
};

// What `attempt` finds; where it finds nothing, the first invariant that broke in it.
template <class Attempt>
std::optional<Verdict> asking_invariants(const Attempt& attempt) {
  const InvariantWatch watch;
  if (auto verdict = attempt()) return verdict;
  return watch.verdict();
}

}  // namespace ferry::verify
