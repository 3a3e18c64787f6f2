// Portals between two simulated devices, over an autograd that counts what it is asked for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "shared/skip/portal.h"
#include "tests/shared/transfer/strict_autograd.h"

namespace ferry::test {

class StrictPortals : public testing::Test {
 protected:
  using Value = sim::Value;
  using Hidden = Portal<sim::SimDevice, StrictAutograd>;
  using NoGrad = sim::SimAutograd::GradModeScope;

  StrictAutograd autograd() { return {rig_.autograd(), asked_}; }
  std::shared_ptr<Hidden> portal() { return std::make_shared<Hidden>(autograd(), Rules()); }
  Value without_gradient(DType dtype = DType::kF32) { return {rig_.fresh(dtype), {}}; }
  // A phony, as a stage that pops forks it.
  Value phony() {
    Value lane = rig_.leaf();
    return fork(autograd(), lane);
  }
  bool requires_grad(const Value& value) { return autograd().requires_grad(value); }
  // To the second device.
  void cross(Hidden& hidden, Value& lane) {
    Transfer<sim::SimDevice> transfer(rig_.place(0), rig_.place(1));
    transfer.send();
    hidden.copy(transfer, lane);
  }

  PipelineRig rig_{2};
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
};

}  // namespace ferry::test
