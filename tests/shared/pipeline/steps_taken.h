// The core's own steps in a run of the simulated machine: what each is, and on which stream.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

// It must outlive the machine.
class StepsTaken final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.step == Step::kUser) return;
    if (op.kind == StreamOpKind::kAlloc || op.kind == StreamOpKind::kFree) return;
    steps_.emplace_back(op.step, op.stream);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [step, stream] : steps_) all.emplace_back(name(step));
    return all;
  }
  bool has(Step step, StreamId stream) const {
    return std::find(steps_.begin(), steps_.end(), std::pair(step, stream)) != steps_.end();
  }

 private:
  std::vector<std::pair<Step, StreamId>> steps_;
};

}  // namespace ferry::test
