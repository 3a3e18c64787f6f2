#include "verify/oracles/invariants.h"

#include <string>

namespace ferry::verify {

thread_local InvariantWatch* InvariantWatch::innermost = nullptr;

// The handler is set once, for all threads, and stays. On a thread without a watch it ends the
// process.
InvariantWatch::InvariantWatch() {
  static const InvariantHandler before = set_invariant_handler(note);
  static_cast<void>(before);
}

InvariantWatch::~InvariantWatch() { innermost = outer_; }

void InvariantWatch::note(const BrokenInvariant& broken) noexcept {
  if (!innermost) return end_process(broken);
  if (!innermost->first_) innermost->first_ = broken;
}

std::optional<Verdict> InvariantWatch::verdict() const {
  if (!first_) return std::nullopt;
  std::string words = "an assertion failed: " + std::string(first_->words) + " (" +
                      std::string(first_->file) + ":" + std::to_string(first_->line) + ")";
  return Verdict{Oracle::kInvariant, std::move(words)};
}

}  // namespace ferry::verify
