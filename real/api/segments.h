// Reports the calls of ferry::checkpoint to an observer: a capture, which records them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

// Called before the function, with the tensor arguments in order, undefined ones included. The
// returned scope lives until the function has returned.
using SegmentObserver =
    std::function<CheckpointScope(const std::vector<at::Tensor>& arguments, bool reentrant)>;

// While it lives, `observer` hears of the calling thread's calls, in place of any earlier observer.
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

// None if nobody observes.
CheckpointScope begin_segment(const std::vector<at::Tensor>& arguments, bool reentrant);

}  // namespace ferry::real
