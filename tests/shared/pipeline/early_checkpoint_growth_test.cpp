// The memory of the host that a checkpoint in two halves takes, backward after backward.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "shared/pipeline/early_checkpoint.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;
using Values = std::vector<Value>;
using Checkpoint = EarlyCheckpoint<sim::SimDevice, sim::SimAutograd>;

// A program that goes through one graph again and again. (Where a sanitizer has the allocator, it
// says nothing.)
TEST(EarlyCheckpointGrowth, AGraphThatIsRetainedTakesNoMoreForEveryBackward) {
  test::PipelineRig rig(1);
  sim::SimAutograd autograd = rig.autograd();
  const auto state = std::make_shared<CheckpointState<sim::SimDevice, sim::SimAutograd>>(
      sim::SimDevice(rig.machine()), autograd, Rules());
  Values inputs = {rig.leaf()};
  const auto checkpoint =
      std::make_shared<Checkpoint>(state, inputs, CoreCheckpointOptions{}, [&](Values in) {
        return autograd.node(in, {Value{in[0].tensor, {}}}, [](Values given) { return given; });
      });
  Values out = checkpoint->checkpoint(inputs, [] { return Values(); });
  checkpoint->recompute(inputs, out);
  const auto in_use = [&](int backwards) {
    for (int i = 0; i < backwards; ++i) rig.backward(out, /*retain_graph=*/true);
    const struct mallinfo2 memory = mallinfo2();
    return static_cast<std::int64_t>(memory.uordblks + memory.hblkhd);
  };
  constexpr int kBackwards = 1100;  // more than launches may wait for the device
  const std::int64_t before = in_use(kBackwards);
  const std::int64_t grown = in_use(kBackwards) - before;
  EXPECT_LT(grown, kBackwards);  // bytes: less than one for each
}

}  // namespace
}  // namespace ferry
