// The checkpoint in two halves.
#include "shared/pipeline/early_checkpoint.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;
using test::PipelineRig;
using Values = std::vector<Value>;
using Checkpoint = EarlyCheckpoint<sim::SimDevice, sim::SimAutograd>;

class EarlyCheckpointTest : public testing::Test {
 protected:
  Values run(Values inputs, std::function<Values(Values)> function) {
    const auto checkpoint =
        std::make_shared<Checkpoint>(state_, inputs, CoreCheckpointOptions{}, std::move(function));
    Values outputs = checkpoint->checkpoint(inputs, [] { return Values(); });
    checkpoint->recompute(inputs, outputs);
    return outputs;
  }
  Value gradient(const Value& leaf) { return rig_.autograd().gradient(leaf); }

  PipelineRig rig_{1};
  const std::shared_ptr<CheckpointState<sim::SimDevice, sim::SimAutograd>> state_ =
      std::make_shared<CheckpointState<sim::SimDevice, sim::SimAutograd>>(
          sim::SimDevice(rig_.machine()), rig_.autograd(), Rules());
};

TEST_F(EarlyCheckpointTest, RunsAgainOnceForEachBackward) {
  int runs = 0;
  const Value x = rig_.leaf();
  const Values out = run({x}, [&](Values in) {
    ++runs;
    return Values{rig_.saving_op(in)};
  });
  EXPECT_EQ(runs, 1);
  rig_.backward(out, /*retain_graph=*/true);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(gradient(x).tensor);
  rig_.backward(out);
  EXPECT_EQ(runs, 3);
}

// fairscale drops such outputs and passes all gradients: what follows them gets another one's.
TEST_F(EarlyCheckpointTest, AnOutputWithoutAGradientGoesWithIt) {
  const Value x = rig_.leaf();
  const Value y = rig_.leaf();
  const Values out = run({x, y}, [&](Values in) {
    const Value constant{rig_.fresh(), {}};
    return Values{constant, rig_.saving_op({in[0]}), constant, rig_.saving_op({in[1]})};
  });
  ASSERT_EQ(out.size(), 4u);
  rig_.backward({out[3]});
  EXPECT_TRUE(gradient(y).tensor);
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

// The parameters of a first stage have gradients, though its input has none.
TEST_F(EarlyCheckpointTest, InputsNeedNoGradient) {
  const Value weight = rig_.leaf();
  const Values out = run({{rig_.fresh(), {}}}, [&](Values in) {
    return Values{rig_.op({in[0], weight})};
  });
  EXPECT_TRUE(rig_.autograd().requires_grad(out.front()));
  rig_.backward(out);
  EXPECT_TRUE(gradient(weight).tensor);
}

// A frozen stage: its outputs have a graph, as it was not known what it has.
TEST_F(EarlyCheckpointTest, NothingInItNeedsAGradient) {
  int runs = 0;
  const Value x{rig_.fresh(), {}};
  const Values out = run({x}, [&](Values in) {
    ++runs;
    return Values{rig_.op(in)};
  });
  rig_.backward(out);
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(gradient(x).tensor);
}

TEST_F(EarlyCheckpointTest, AnOutputOfIntegersHasNoGraph) {
  const Values out = run({rig_.leaf()}, [&](Values in) {
    return Values{rig_.op(in), {rig_.fresh(DType::kI64), {}}};
  });
  EXPECT_TRUE(rig_.autograd().requires_grad(out[0]));
  EXPECT_FALSE(rig_.autograd().requires_grad(out[1]));
}

// As without a checkpoint: torchgpipe's gives zeros on, which an optimizer takes for gradients.
TEST_F(EarlyCheckpointTest, WhereNoGradientComesNoneGoesOn) {
  const Value x = rig_.leaf();
  const Value y = rig_.leaf();
  const Value weight = rig_.leaf();
  const Values out = run({x, y}, [&](Values in) {
    return Values{rig_.op({in[0], weight}), rig_.op({in[1]})};
  });
  rig_.backward({out[1]});
  EXPECT_TRUE(gradient(y).tensor);
  EXPECT_FALSE(gradient(x).tensor);
  EXPECT_FALSE(gradient(weight).tensor);
}

// A stash's gradient is there, though none comes for the value that its phony was joined to.
TEST_F(EarlyCheckpointTest, WhatJoinedAnOutputHasItsTurnWithoutAGradient) {
  const Value weight = rig_.leaf();
  const Value x = rig_.leaf();
  const Value y = rig_.leaf();
  int turns = 0;
  const Values out = run({x, y}, [&](Values in) {
    sim::SimAutograd autograd = rig_.autograd();
    const Values phony = autograd.node(Values{weight}, Values{autograd.phony(weight)}, [&](Values) {
      ++turns;
      return Values{Value()};
    });
    Values outputs = {rig_.op({in[0]}), rig_.op({in[1]})};
    join(autograd, outputs[0], phony.front());
    return outputs;
  });
  rig_.backward({out[1]});
  EXPECT_EQ(turns, 1);
  EXPECT_FALSE(gradient(x).tensor);
}

TEST_F(EarlyCheckpointTest, AFailureInTheRecomputeLeavesNothingAndTheNextOneWorks) {
  bool fails = false;
  const Value x = rig_.leaf();
  const Values out = run({x}, [&](Values in) {
    Value y = rig_.saving_op(in);
    if (fails) throw std::runtime_error("user code");
    return Values{y};
  });
  fails = true;
  const std::int64_t before = rig_.machine().live_storages();
  EXPECT_THROW(rig_.backward(out, true), std::runtime_error);
  EXPECT_EQ(rig_.machine().live_storages(), before);
  fails = false;
  rig_.backward(out);
  EXPECT_TRUE(gradient(x).tensor);
}

// A worker runs the first half and numbers its node; who began the step numbers the second's.
// Whatever the numbers: where the first half came first in backward, it ran the function again, the
// second half ran it once more, and kept what it made.
TEST_F(EarlyCheckpointTest, RunsAgainOnceHoweverManyNodesTheWorkerHasMade) {
  for (const int nodes_before : {0, 1, 100}) {
    int runs = 0;
    const Value x = rig_.leaf();
    Values inputs = {x};
    rig_.machine().set_host_thread(1);
    for (int i = 0; i < nodes_before; ++i) rig_.op({x});
    std::weak_ptr<sim::StorageImpl> again;
    const auto checkpoint =
        std::make_shared<Checkpoint>(state_, inputs, CoreCheckpointOptions{}, [&](Values in) {
          ++runs;
          const Value y = rig_.saving_op(in);
          again = y.tensor->storage;
          return Values{rig_.saving_op({y})};
        });
    Values out = checkpoint->checkpoint(inputs, [] { return Values(); });
    rig_.machine().set_host_thread(0);
    checkpoint->recompute(inputs, out);
    rig_.backward(out);
    EXPECT_EQ(runs, 2) << nodes_before;
    EXPECT_TRUE(again.expired()) << nodes_before;
  }
}

// The second half ran, and what stands between it and the first one fails.
TEST_F(EarlyCheckpointTest, ABackwardThatFailsBetweenTheHalvesKeepsNothing) {
  auto autograd = rig_.autograd();
  int runs = 0;
  bool fails = true;
  const Value x = rig_.leaf();
  Values inputs = {x};
  const auto checkpoint =
      std::make_shared<Checkpoint>(state_, inputs, CoreCheckpointOptions{}, [&](Values in) {
        ++runs;
        return Values{rig_.saving_op(in)};
      });
  Values out = checkpoint->checkpoint(inputs, [] { return Values(); });
  out = autograd.node(out, out, [&](Values gradients) {
    if (fails) throw std::runtime_error("on its way from the next device");
    return gradients;
  });
  checkpoint->recompute(inputs, out);
  const std::int64_t before = rig_.machine().live_storages();
  EXPECT_THROW(rig_.backward(out, true), std::runtime_error);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(rig_.machine().live_storages(), before);
  fails = false;
  rig_.backward(out);
  EXPECT_EQ(runs, 3);
  EXPECT_TRUE(gradient(x).tensor);
}

TEST_F(EarlyCheckpointTest, AfterBackwardNothingIsKept) {
  const Value x = rig_.leaf();
  std::weak_ptr<sim::StorageImpl> inside;
  const Values out = run({x}, [&](Values in) {
    const Value y = rig_.saving_op(in);
    inside = y.tensor->storage;
    return Values{rig_.saving_op({y})};
  });
  EXPECT_TRUE(inside.expired());
  rig_.backward(out);
  EXPECT_TRUE(inside.expired());
}

}  // namespace
}  // namespace ferry
