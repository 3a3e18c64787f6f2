#include "real/api/segments.h"

#include <utility>

namespace ferry::real {
namespace {

thread_local const SegmentObserver* observing = nullptr;

}  // namespace

ObserveSegments::ObserveSegments(SegmentObserver observer)
    : observer_(std::move(observer)), before_(std::exchange(observing, &observer_)) {}

ObserveSegments::~ObserveSegments() { observing = before_; }

CheckpointScope begin_segment(const std::vector<at::Tensor>& arguments, bool reentrant) {
  return observing ? (*observing)(arguments, reentrant) : nullptr;
}

}  // namespace ferry::real
