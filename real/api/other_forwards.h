// Decides whether a forward that does not match the plan is an error, or a forward with another
// batch.
//
// The last batch of an epoch is smaller, sequences vary, and only padded batches have a mask. If
// OffloadOptions::other_shapes allows it, a saved tensor that differs from the plan only in its
// sizes makes its forward an *other* one. Once a forward has matched the plan, any difference does.
// Before that, a difference is an error: otherwise a plan for another model, mode or autocast would
// never be executed, and nobody would notice.
//
// Other hooks then pack what the forward saves. What was packed before the difference was found
// stays as it is, and can be unpacked.
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
  // True if the present forward is an other one.
  bool is_here() const { return here_; }
  // Returns the number of other forwards.
  std::int64_t count() const { return count_; }

  // Reports a difference between the present forward and the plan; `in_sizes_alone` if only sizes
  // differ. Throws PlanMismatch if that is an error.
  void meet(const std::string& difference, bool in_sizes_alone);
  // Ends the present forward. `as_planned` says that it matched the plan.
  void end_run(bool as_planned);

 private:
  const bool allowed_;
  std::atomic<bool> here_ = false;
  std::atomic<bool> planned_ = false;  // a forward matched the plan
  std::atomic<std::int64_t> count_ = 0;
};

}  // namespace ferry::real
