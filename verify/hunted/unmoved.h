// What stayed on the device though it should have moved: a tensor that was packed, of which the
// host neither has a copy nor gets one.
//
// A copy is known by the packed tensor's bytes: they are on the host from a pack that copied until
// something writes or frees them.
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
  // Returns the same scheduler, watched by this, which outlives it.
  std::unique_ptr<sim::Scheduler> watch(std::unique_ptr<sim::Scheduler> scheduler);
  void operator()(const StreamOp& op) override;

  bool any() const { return count_ > 0; }
  std::string words() const;

 private:
  class Watched;
  class Pair;
  void packed(const sim::Tensor& tensor);

  std::vector<const sim::TensorImpl*> exempt_;
  std::vector<Range> moved_;
  bool copied_ = false;  // since the last pack
  int count_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace ferry::verify
