// Finds saved tensors that stayed on the device although a scheduler promised to move everything
// (HuntedScheduler::moves_all).
//
// A tensor counts as moved if its pack makes a copy to the host, or if an earlier pack copied the
// same bytes and nothing has written or freed them since. Exempt tensors and tensors below 1 KiB
// may stay.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/gpu/machine.h"
#include "sim/run/training/scheduler.h"

namespace ferry::verify {

class Unmoved final : public StreamOpConsumer {
 public:
  // Returns a scheduler that passes all calls on. This object must outlive it.
  std::unique_ptr<sim::Scheduler> watch(std::unique_ptr<sim::Scheduler> scheduler);
  void operator()(const StreamOp& op) override;

  bool any() const { return count_ > 0; }
  std::string words() const;

 private:
  class Watched;
  class Pair;
  void packed(const sim::Tensor& tensor);

  std::vector<const sim::TensorImpl*> exempt_;
  std::vector<Range> moved_;  // bytes that the host has a copy of
  bool copied_ = false;       // since the last pack
  int count_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace ferry::verify
