// The simulated autograd, which counts what it is asked for and takes nothing that the seam does
// not allow: outputs of a node have no graph, and only what exists can be asked about.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

struct Asked {
  std::int64_t nodes = 0;
  std::int64_t phonies = 0;
};

class StrictAutograd final : public sim::SimAutograd {
 public:
  StrictAutograd(sim::SimAutograd autograd, std::shared_ptr<Asked> asked)
      : SimAutograd(autograd), asked_(std::move(asked)) {}

  bool differentiable(const Value& value) const {
    EXPECT_TRUE(exists(value)) << "an absent value has no dtype";
    return SimAutograd::differentiable(value);
  }
  Value phony(const Value& value) {
    ++asked_->phonies;
    return SimAutograd::phony(value);
  }
  using SimAutograd::node;
  std::vector<Value> node(std::span<const Value> inputs, std::vector<Value> outputs,
                          std::function<std::vector<Value>(std::vector<Value>)> backward) {
    ++asked_->nodes;
    for (const Value& output : outputs) {
      EXPECT_FALSE(requires_grad(output)) << "what becomes an output has no graph";
    }
    return SimAutograd::node(inputs, std::move(outputs), std::move(backward));
  }

 private:
  std::shared_ptr<Asked> asked_;
};

}  // namespace ferry::test
