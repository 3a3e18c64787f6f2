// What becomes of a forward that is not the plan's: an error, or a forward of another batch.
//
// The last batch of an epoch is smaller, sequences vary, and a padded batch has a mask that another
// has not. Where OffloadOptions::other_shapes allows it, a saved tensor that differs from the
// plan's in its sizes alone makes the forward another one, and once a forward was the plan's so
// does any difference. Before that a difference is an error: a plan of another model, mode or
// autocast would never be carried out, and nobody would know.
//
// What other forwards save goes to hooks of their own. What was packed before the difference showed
// stays where it is: it is served however it was packed.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ferry/offload.h"

namespace ferry::real {

class OtherForwards {
 public:
  explicit OtherForwards(OtherShapes allowed) : allowed_(allowed != OtherShapes::kRaise) {}

  bool are_allowed() const { return allowed_; }
  // The present forward is another one.
  bool is_here() const { return here_; }
  // So many were.
  std::int64_t count() const { return count_; }

  // The present forward differs from the plan's, as the text says, and maybe in sizes alone. Throws
  // PlanMismatch where that is an error.
  void meet(const std::string& difference, bool in_sizes_alone);
  // The present forward is over. `as_planned`: it was the plan's.
  void end_run(bool as_planned);

 private:
  const bool allowed_;
  std::atomic<bool> here_ = false;
  std::atomic<bool> planned_ = false;  // a forward was the plan's
  std::atomic<std::int64_t> count_ = 0;
};

}  // namespace ferry::real
