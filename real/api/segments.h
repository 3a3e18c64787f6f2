// Reports calls of ferry::checkpoint to an observer. Captures record them in this way.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

// Called before the function, with the tensor arguments in order, including undefined ones. The
// returned scope lives until the function has returned.
using SegmentObserver =
    std::function<CheckpointScope(const std::vector<at::Tensor>& arguments, bool reentrant)>;

// While it lives, `observer` gets the calls on this thread, instead of an earlier observer.
class ObserveSegments {
 public:
  explicit ObserveSegments(SegmentObserver observer);
  ObserveSegments(const ObserveSegments&) = delete;
  ObserveSegments& operator=(const ObserveSegments&) = delete;
  ~ObserveSegments();

 private:
  const SegmentObserver observer_;
  const SegmentObserver* const before_;
};

// Returns null if there is no observer.
CheckpointScope begin_segment(const std::vector<at::Tensor>& arguments, bool reentrant);

}  // namespace ferry::real
