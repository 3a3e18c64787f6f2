// Portals: when each gives its tensor up, and where gradients go.
#include "shared/skip/portal.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "shared/pipeline/pipeline.h"
#include "sim/gpu/workers.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;
using test::PipelineRig;
using Values = std::vector<Value>;
using SimPortal = Portal<sim::SimDevice, sim::SimAutograd>;

class PortalTest : public testing::Test {
 protected:
  std::shared_ptr<SimPortal> portal(Rules rules = {}) {
    return std::make_shared<SimPortal>(rig_.autograd(), rules);
  }
  // To the second device, which may receive it now.
  void cross(SimPortal& hidden, Value& lane) {
    Transfer<sim::SimDevice> transfer(rig_.place(0), rig_.place(1));
    transfer.send();
    hidden.copy(transfer, lane);
  }
  // What the second device computes with.
  sim::SimDevice::StreamScope on_second() { return {rig_.place(1).device, rig_.place(1).compute}; }
  PipelineRig rig_{2};
};

// Two lives: one for the stash, one for the pop.
TEST_F(PortalTest, GivesItsTensorUpWhenItIsPopped) {
  const auto hidden = portal();
  std::weak_ptr<sim::StorageImpl> storage;
  {
    const Value x = rig_.leaf();
    storage = x.tensor->storage;
    hidden->blue(x, /*again=*/false);
  }
  EXPECT_FALSE(storage.expired());
  EXPECT_TRUE(hidden->take());
  EXPECT_TRUE(storage.expired());
  EXPECT_TRUE(hidden->empty());
}

TEST_F(PortalTest, WhatWasPoppedIsGone) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), false);
  hidden->take();
  try {
    hidden->take();
    FAIL();
  } catch (const SkipError& error) {
    EXPECT_STREQ(error.what(), "tensor in portal has been removed");
  }
}

// One life, in torchgpipe: it is reset for the recomputed stash, and ends with it.
TEST_F(PortalTest, WhatIsStashedAgainIsNotKept) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), /*again=*/false);
  hidden->take();
  std::weak_ptr<sim::StorageImpl> storage;
  {
    const Value x = rig_.leaf();
    storage = x.tensor->storage;
    EXPECT_TRUE(rig_.autograd().requires_grad(hidden->blue(x, /*again=*/true)));
  }
  EXPECT_TRUE(storage.expired());
}

TEST_F(PortalTest, NoneIsStashedAndPopped) {
  const auto hidden = portal();
  EXPECT_FALSE(rig_.autograd().requires_grad(hidden->blue(Value(), false)));
  EXPECT_FALSE(hidden->take());
  EXPECT_THROW(hidden->take(), SkipError);
}

TEST_F(PortalTest, ThePopComesBeforeTheStashAndTheGradientArrives) {
  const auto hidden = portal();
  const Value x = rig_.leaf();
  Value lane = rig_.leaf();
  join(rig_.autograd(), lane, hidden->blue(x, false));
  cross(*hidden, lane);
  const auto on = on_second();
  const Value phony = fork(rig_.autograd(), lane);
  const Value popped = hidden->orange(*hidden->take(), phony);
  EXPECT_EQ(popped.tensor->storage->device, 1u);
  rig_.backward({rig_.op({popped, lane})});
  ASSERT_TRUE(rig_.autograd().gradient(x).tensor);
  EXPECT_EQ(rig_.autograd().gradient(x).tensor->storage->device, 0u);
  EXPECT_TRUE(hidden->empty());
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

// pytorch#110775: what was popped is not part of the loss.
TEST_F(PortalTest, WithoutAGradientThereIsNone) {
  const auto hidden = portal();
  const Value x = rig_.leaf();
  const Value lane_leaf = rig_.leaf();
  Value lane = lane_leaf;
  join(rig_.autograd(), lane, hidden->blue(x, false));
  cross(*hidden, lane);
  const auto on = on_second();
  const Value phony = fork(rig_.autograd(), lane);
  hidden->orange(*hidden->take(), phony);
  rig_.backward({lane});
  EXPECT_FALSE(rig_.autograd().gradient(x).tensor);
  EXPECT_TRUE(rig_.autograd().gradient(lane_leaf).tensor);
}

// A pipeline of two stages whose first one stashes what it is given, and whose second one pops it.
class PortalsInAPipeline : public testing::TestWithParam<CheckpointMode> {
 protected:
  Values run(std::function<void(const Value&)> popped) {
    CorePipelineOptions options;
    options.checkpoint = GetParam();
    std::vector<PipelineStage<sim::SimAutograd>> stages = {
        {0,
         [this](Values x) {
           x = {rig_.op(x)};
           current_skip_tracker(rig_.autograd())->save({"skip"}, rig_.op(x));
           return x;
         }},
        {1, [this, popped](Values x) {
           x.push_back(current_skip_tracker(rig_.autograd())->load({"skip"}));
           popped(x.back());
           return Values{rig_.op(x)};
         }}};
    Pipeline pipeline(rig_.devices(), rig_.autograd(), sim::SimWorkers(rig_.machine()),
                      std::move(stages), SkipLayout({{SkipName("skip"), 0, 1}}), options);
    return pipeline.forward({{rig_.leaf()}}).front();
  }
  bool checkpointed() const { return GetParam() == CheckpointMode::kAlways; }
  PipelineRig rig_{2};
};

// Three lives: the stash, the pop, and the pop of the recompute. Where nothing runs again the
// function's own graph is all that keeps it (here none: the op saves nothing).
TEST_P(PortalsInAPipeline, TheTensorLivesUntilItsLastPop) {
  std::vector<std::weak_ptr<sim::StorageImpl>> popped;
  const Values out = run([&](const Value& value) {
    for (const auto& earlier : popped) EXPECT_FALSE(earlier.expired());
    popped.push_back(value.tensor->storage);
  });
  ASSERT_EQ(popped.size(), 1u);
  EXPECT_EQ(popped[0].expired(), !checkpointed());
  rig_.backward(out);
  EXPECT_EQ(popped.size(), checkpointed() ? 2u : 1u);
  for (const auto& each : popped) EXPECT_TRUE(each.expired());
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

// Where lives are counted the second backward finds none.
TEST_P(PortalsInAPipeline, SeveralBackwards) {
  int pops = 0;
  const Values out = run([&](const Value&) { ++pops; });
  for (const bool retain : {true, true, false}) rig_.backward(out, retain);
  EXPECT_EQ(pops, checkpointed() ? 4 : 1);
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

TEST_P(PortalsInAPipeline, AGraphThatIsDroppedKeepsNothing) {
  const std::int64_t before = rig_.machine().live_storages();
  run([](const Value&) {});
  EXPECT_EQ(rig_.machine().live_storages(), before);
}

INSTANTIATE_TEST_SUITE_P(Modes, PortalsInAPipeline,
                         testing::Values(CheckpointMode::kNever, CheckpointMode::kAlways),
                         [](const auto& each) { return std::string(name(each.param)); });

}  // namespace
}  // namespace ferry
