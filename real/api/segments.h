// Who is told of the calls of ferry::checkpoint: a capture, which writes them down.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

// Called before the function is, with the tensor arguments in their order, undefined ones as well.
// What it returns lives until the function has returned.
using SegmentObserver =
    std::function<CheckpointScope(const std::vector<at::Tensor>& arguments, bool reentrant)>;

// While it lives, `observer` is told of the calling thread's calls, in place of one before it.
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

// None where nobody observes.
CheckpointScope begin_segment(const std::vector<at::Tensor>& arguments, bool reentrant);

}  // namespace ferry::real
