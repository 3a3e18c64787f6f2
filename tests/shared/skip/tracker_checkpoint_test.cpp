// Skip tensors and checkpoints of a user's: a region that pops finds the same tensor each time it
// runs again, also where its recompute stops early or there are several backwards.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "shared/skip/tracker.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;
using test::PipelineRig;
using Values = std::vector<Value>;

class SkipsInCheckpoints : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  bool early_stop() const { return std::get<0>(GetParam()); }
  bool reentrant() const { return std::get<1>(GetParam()); }

  Values checkpoint(const Values& inputs, const std::function<Values(Values)>& function) {
    CoreCheckpointOptions options;
    options.early_stop = early_stop();
    if (reentrant()) return checkpointer_.run_reentrant(inputs, options, function);
    Values outputs;
    const auto run = [function](Values in) { function(std::move(in)); };
    checkpointer_.run(inputs, options, run, [&](Values in) { outputs = function(std::move(in)); });
    return outputs;
  }
  // An op that saves these and the skip tensor.
  Values popping(const Values& inputs) {
    return checkpoint(inputs, [this](Values in) {
      in.push_back(skips()->load({"skip"}));
      return Values{rig_.saving_op(in)};
    });
  }
  std::shared_ptr<SkipTracker<Value>> skips() { return current_skip_tracker(rig_.autograd()); }

  PipelineRig rig_{1};
  Checkpointer<sim::SimDevice, sim::SimAutograd> checkpointer_{sim::SimDevice(rig_.machine()),
                                                               rig_.autograd()};
  const std::shared_ptr<PlainSkips<Value>> tracker_ = std::make_shared<PlainSkips<Value>>();
};

TEST_P(SkipsInCheckpoints, ARegionThatPops) {
  const SkipTrackerGuard<sim::SimAutograd> guard(rig_.autograd(), tracker_);
  const Value x = rig_.leaf();
  const Value skip = rig_.leaf();
  skips()->save({"skip"}, skip);
  std::vector<std::weak_ptr<sim::StorageImpl>> popped;
  const Values out = checkpoint({x}, [&](Values in) {
    in.push_back(skips()->load({"skip"}));
    popped.push_back(in.back().tensor->storage);
    const Value y = rig_.saving_op(in);
    return Values{rig_.saving_op({y})};
  });
  EXPECT_TRUE(tracker_->empty());
  for (const bool retain : {true, true, false}) rig_.backward(out, retain);
  EXPECT_EQ(popped.size(), 4u);
  for (const auto& each : popped) EXPECT_EQ(each.lock(), skip.tensor->storage);
  EXPECT_TRUE(rig_.autograd().gradient(x).tensor);
  EXPECT_TRUE(rig_.autograd().gradient(skip).tensor);
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

// It would run again on something else; so it is with its inputs.
TEST_P(SkipsInCheckpoints, ARegionWhosePoppedTensorIsWritten) {
  const SkipTrackerGuard<sim::SimAutograd> guard(rig_.autograd(), tracker_);
  const Value x = rig_.leaf();
  const Value skip = rig_.leaf();
  skips()->save({"skip"}, skip);
  const Values out = popping({x});
  ++skip.tensor->version->value;
  EXPECT_THROW(rig_.backward(out), ModifiedInPlace);
}

// What a region pops is its own matter: hooks around it are given its inputs.
TEST_P(SkipsInCheckpoints, NoHooksSeeWhatARegionPopped) {
  struct Counting final : Hooks<sim::Tensor> {
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
      seen.push_back(tensor);
      return nullptr;
    }
    std::vector<sim::Tensor> seen;
  };
  const SkipTrackerGuard<sim::SimAutograd> guard(rig_.autograd(), tracker_);
  const auto hooks = std::make_shared<Counting>();
  const HooksGuard<sim::SimAutograd> around(rig_.autograd(), hooks);
  const Value x = rig_.leaf();
  const Value skip = rig_.leaf();
  skips()->save({"skip"}, skip);
  const Values out = popping({x});
  ASSERT_EQ(hooks->seen.size(), 1u);
  EXPECT_EQ(hooks->seen.front()->storage, x.tensor->storage);
}

// The recompute may stop before it comes to the stash; who popped has its tensor.
TEST_P(SkipsInCheckpoints, ARegionThatStashes) {
  const SkipTrackerGuard<sim::SimAutograd> guard(rig_.autograd(), tracker_);
  const Value x = rig_.leaf();
  int stashes = 0;
  const Values out = checkpoint({x}, [&](Values in) {
    const Value y = rig_.saving_op(in);
    skips()->save({"skip"}, y);
    ++stashes;
    return Values{rig_.op({y})};
  });
  const Value z = rig_.op({out.front(), skips()->load({"skip"})});
  for (const bool retain : {true, false}) rig_.backward({z}, retain);
  const bool stops = early_stop() && !reentrant();
  EXPECT_EQ(stashes, stops ? 1 : 3);
  EXPECT_TRUE(tracker_->empty());
  EXPECT_TRUE(rig_.autograd().gradient(x).tensor);
}

// Without a guard the thread's own tracker serves.
TEST_P(SkipsInCheckpoints, WithoutAPipeline) {
  const Value x = rig_.leaf();
  skips()->save({"skip"}, x);
  const Values out = popping({x});
  rig_.backward(out);
  EXPECT_TRUE(rig_.autograd().gradient(x).tensor);
  EXPECT_THROW(skips()->load({"skip"}), SkipError);
}

TEST_P(SkipsInCheckpoints, ADroppedRegionKeepsNothing) {
  const SkipTrackerGuard<sim::SimAutograd> guard(rig_.autograd(), tracker_);
  std::weak_ptr<sim::StorageImpl> popped;
  {
    const Value x = rig_.leaf();
    skips()->save({"skip"}, rig_.op({x}));
    const Values out = checkpoint({x}, [&](Values in) {
      in.push_back(skips()->load({"skip"}));
      popped = in.back().tensor->storage;
      return Values{rig_.saving_op(in)};
    });
    EXPECT_FALSE(popped.expired());
  }
  EXPECT_TRUE(popped.expired());
  EXPECT_EQ(rig_.machine().live_storages(), 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, SkipsInCheckpoints,
                         testing::Combine(testing::Bool(), testing::Bool()), [](const auto& each) {
                           return std::string(std::get<0>(each.param) ? "early_stop" : "whole") +
                                  (std::get<1>(each.param) ? "_reentrant" : "");
                         });

}  // namespace
}  // namespace ferry
