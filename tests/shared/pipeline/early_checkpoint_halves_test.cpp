// What the two halves of a checkpoint hand each other, and whose it is: several backwards may be
// between them at a time.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "shared/pipeline/early_checkpoint.h"
#include "tests/shared/pipeline/asked_autograd.h"

namespace ferry {
namespace {

using sim::Value;
using test::AskedAutograd;
using test::PipelineRig;
using Values = std::vector<Value>;

// A device whose mutexes say how often each was taken.
struct LockedDevice : sim::SimDevice {
  struct Mutex {
    void lock() { ++taken()[this]; }
    void unlock() {}
    static std::map<const void*, int>& taken() {
      static std::map<const void*, int> all;
      return all;
    }
  };
  explicit LockedDevice(sim::SimDevice device) : SimDevice(device) {}
};

class CheckpointHalves : public testing::Test {
 protected:
  using Checkpoint = EarlyCheckpoint<LockedDevice, AskedAutograd>;
  using Function = std::function<Values(Values)>;

  void SetUp() override { LockedDevice::Mutex::taken().clear(); }
  std::shared_ptr<Checkpoint> checkpoint(const Values& inputs, Function function) {
    return std::make_shared<Checkpoint>(state_, inputs, CoreCheckpointOptions{},
                                        std::move(function));
  }
  // A node that does this and hands its gradient on.
  Values node(const Values& in, std::function<void()> run) {
    return rig_.autograd().node(in, {{in.front().tensor, {}}}, [run](Values gradients) {
      run();
      return gradients;
    });
  }
  // How often the checkpoint's own mutex was taken.
  static int taken(const Checkpoint& checkpoint) {
    const std::less<const void*> before;
    int count = 0;
    for (const auto& [mutex, times] : LockedDevice::Mutex::taken()) {
      if (!before(mutex, &checkpoint) && before(mutex, &checkpoint + 1)) count += times;
    }
    return count;
  }
  Value gradient(const Value& leaf) { return rig_.autograd().gradient(leaf); }

  PipelineRig rig_{1};
  AskedAutograd autograd_{rig_};
  const std::shared_ptr<CheckpointState<LockedDevice, AskedAutograd>> state_ =
      std::make_shared<CheckpointState<LockedDevice, AskedAutograd>>(
          LockedDevice(sim::SimDevice(rig_.machine())), autograd_, Rules());
};

const auto kNothing = [] { return Values(); };

// What `keep` returns comes with them, and nothing else does, whichever half runs the function.
TEST_F(CheckpointHalves, TheFunctionRunsAgainOnItsInputsAndWhatWasKept) {
  for (const bool early : {true, false}) {
    const Value kept{rig_.fresh(), {}};
    std::vector<Values> runs;
    Values inputs = {rig_.leaf()};
    const Value x = inputs.front();
    const auto made = checkpoint(inputs, [&](Values in) {
      runs.push_back(in);
      return Values{rig_.saving_op({in[0]})};
    });
    Values out = made->checkpoint(inputs, [&] { return Values{kept}; });
    if (early) made->recompute(inputs, out);
    rig_.backward(out);
    ASSERT_EQ(runs.size(), 2u);
    ASSERT_EQ(runs[0].size(), 1u);
    ASSERT_EQ(runs[1].size(), 2u);
    EXPECT_EQ(runs[1][0].tensor->storage, x.tensor->storage);
    EXPECT_EQ(runs[1][1].tensor->storage, kept.tensor->storage);
    EXPECT_TRUE(gradient(x).tensor);
  }
}

TEST_F(CheckpointHalves, ThePhonyBetweenThemIsWhereTheFirstInputIs) {
  Values inputs = {rig_.leaf(), rig_.leaf()};
  checkpoint(inputs, [&](Values in) { return Values{rig_.op(in)}; })->checkpoint(inputs, kNothing);
  ASSERT_EQ(autograd_.asked().phonies.size(), 1u);
  EXPECT_EQ(autograd_.asked().phonies.front(), inputs.front().tensor.get());
}

TEST_F(CheckpointHalves, AFunctionMayHaveNoInputs) {
  const Value weight = rig_.leaf();
  int runs = 0;
  Values inputs;
  const auto made = checkpoint(inputs, [&](Values in) {
    EXPECT_TRUE(in.empty());
    ++runs;
    return Values{rig_.op({weight})};
  });
  Values out = made->checkpoint(inputs, kNothing);
  made->recompute(inputs, out);
  EXPECT_EQ(autograd_.asked().phonies.front(), nullptr);
  rig_.backward(out);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(gradient(weight).tensor);
}

// Of the three outputs the last has a gradient, and the second needs none.
TEST_F(CheckpointHalves, BackwardGoesFromAnOutputWithoutAGradientByAPhony) {
  Values inputs = {rig_.leaf(), rig_.leaf()};
  const auto made = checkpoint(inputs, [&](Values in) {
    return Values{rig_.op({in[0]}), {rig_.fresh(), {}}, rig_.op({in[1]})};
  });
  Values out = made->checkpoint(inputs, kNothing);
  made->recompute(inputs, out);
  autograd_.asked().phonies.clear();
  rig_.backward({out[2]});
  EXPECT_EQ(autograd_.asked().roots, (std::vector<bool>{true, true})) << "each has a gradient";
  EXPECT_EQ(autograd_.asked().phonies.size(), 2u) << "of the first one's fork, and its gradient";
}

// A backward begins while another one is between the halves, and ends before that goes on.
TEST_F(CheckpointHalves, EachBackwardHasItsOwnRun) {
  int runs = 0;
  int inner = 0;
  const Value x = rig_.leaf();
  Values inputs = {x};
  const auto made = checkpoint(inputs, [&](Values in) {
    ++runs;
    return Values{rig_.saving_op(in)};
  });
  Values out;
  Values between = node(made->checkpoint(inputs, kNothing), [&] {
    if (inner++ == 0) rig_.backward(out, /*retain_graph=*/true);
  });
  made->recompute(inputs, between);
  out = between;
  rig_.backward(out, /*retain_graph=*/true);
  EXPECT_EQ(inner, 2);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(state_->statistics().recomputes, 2);
}

// Its graph may be gone by then.
TEST_F(CheckpointHalves, ATaskMayEndAfterTheCheckpoint) {
  autograd_.asked().ends_late = true;
  Values inputs = {rig_.leaf()};
  auto made = checkpoint(inputs, [&](Values in) { return Values{rig_.saving_op(in)}; });
  Values out = made->checkpoint(inputs, kNothing);
  made->recompute(inputs, out);
  rig_.backward(out);
  const std::weak_ptr<Checkpoint> weak = made;
  made.reset();
  inputs.clear();
  out.clear();
  EXPECT_TRUE(weak.expired());
  ASSERT_EQ(autograd_.asked().ends.size(), 1u);
  autograd_.asked().ends.front()();
}

// Backwards of several threads may go through one checkpoint.
TEST_F(CheckpointHalves, WhatRanAgainIsHandedOverUnderALock) {
  Values inputs = {rig_.leaf()};
  const auto made = checkpoint(inputs, [&](Values in) { return Values{rig_.saving_op(in)}; });
  int between = 0;
  Values out = node(made->checkpoint(inputs, kNothing), [&] { between = taken(*made); });
  made->recompute(inputs, out);
  EXPECT_EQ(taken(*made), 0);
  rig_.backward(out);
  EXPECT_EQ(between, 1);
  EXPECT_GT(taken(*made), between);
}

}  // namespace
}  // namespace ferry
