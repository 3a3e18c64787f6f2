#include "shared/checkpoint/selective.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/gpu/device.h"
#include "tests/sim/support/world.h"

namespace ferry {
namespace {

using sim::SimDevice;
using sim::Tensor;
using enum CheckpointPolicy;
struct Device : SimDevice {
  using SimDevice::SimDevice;
  Tensor alias(const Tensor& tensor) { return detach(tensor); }
};
// Ops of the tests return whole numbers beside tensors.
using Cache = SelectiveCache<Device, std::int64_t>;
using Recompute = SelectiveRecompute<Device, std::int64_t>;
static_assert(SelectiveDevice<Device>);

constexpr std::int64_t kBytes = 4096;

// Holds what it is given, and can be told to fail.
struct Elsewhere final : Hooks<Tensor> {
  struct Held final : Saved<Tensor> {
    Held(Elsewhere& pair, Tensor what) : owner(pair), tensor(std::move(what)) { ++owner.held; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() override { --owner.held; }
    Tensor unpack() override {
      if (owner.fails) throw std::runtime_error("the host is gone");
      ++owner.unpacked;
      return tensor;
    }
    Elsewhere& owner;
    Tensor tensor;
  };
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    if (declines) return nullptr;
    return std::make_unique<Held>(*this, tensor);
  }
  bool declines = false;
  bool fails = false;
  int held = 0;
  int unpacked = 0;
};

struct OfCheckpoint final : CheckpointPair<Tensor> {
  std::unique_ptr<Saved<Tensor>> pack(const Tensor&) override {
    throw std::logic_error("what is passed on is none of a checkpoint's");
  }
};

class SelectiveTest : public ::testing::Test {
 protected:
  ~SelectiveTest() override {
    stack = {};
    cache.reset();
    EXPECT_EQ(elsewhere->held, 0);
    world.expect_clean();
  }

  Cache& forward(bool allow_mutation = false) {
    cache = std::make_shared<Cache>(Device(world.machine()), stack, allow_mutation);
    return *cache;
  }
  void push(std::shared_ptr<Hooks<Tensor>> pair) {
    stack.top = std::make_shared<const HookFrame<Tensor>>(
        HookFrame<Tensor>{std::move(pair), std::move(stack.top)});
  }

  // What a recompute sees: "runs", the contents, or the error.
  std::string next(Recompute& recompute, const std::string& op,
                   CheckpointPolicy policy = kPreferRecompute) {
    try {
      const auto outputs = recompute.next(op, [&] { return policy; });
      if (!outputs) return "runs";
      std::string text;
      for (const Cache::Output& output : *outputs) {
        if (!text.empty()) text += " ";
        const auto* const number = std::get_if<std::int64_t>(&output);
        text += number ? std::to_string(*number)
                       : std::to_string(world.contents(std::get<Tensor>(output)));
      }
      return text;
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  std::string text(const Tensor& tensor) { return std::to_string(world.contents(tensor)); }

  test::World world;
  HookStack<Tensor> stack;
  std::shared_ptr<Elsewhere> elsewhere = std::make_shared<Elsewhere>();
  std::shared_ptr<Cache> cache;
};

TEST_F(SelectiveTest, ValuesArePyTorchs) {
  EXPECT_EQ(static_cast<int>(kMustSave), 0);
  EXPECT_EQ(static_cast<int>(kPreferSave), 1);
  EXPECT_EQ(static_cast<int>(kMustRecompute), 2);
  EXPECT_EQ(static_cast<int>(kPreferRecompute), 3);
  EXPECT_EQ(static_cast<int>(kMustOffload), 4);
  EXPECT_EQ(static_cast<int>(kPreferOffload), 5);
  EXPECT_EQ(to_policy(true), kMustSave);
  EXPECT_EQ(to_policy(false), kPreferRecompute);
}

// What forward found where it ran is not kept: a group would keep what it recomputed.
TEST_F(SelectiveTest, ItKeepsNoGroup) {
  CheckpointContext context;
  context.group = std::make_shared<ExecGroup>();
  const std::weak_ptr<ExecGroup> group = context.group;
  push(elsewhere);
  stack.checkpoint = std::make_shared<const CheckpointContext>(std::move(context));
  forward();
  stack.checkpoint = nullptr;
  EXPECT_TRUE(group.expired());
}

TEST_F(SelectiveTest, EachPolicySavesOrRunsAgain) {
  const Tensor tensor = world.make(kBytes);
  for (const auto& [policy, saved] : {std::pair{kMustSave, true},
                                      {kPreferSave, true},
                                      {kMustRecompute, false},
                                      {kPreferRecompute, false},
                                      {kMustOffload, true},
                                      {kPreferOffload, true}}) {
    forward().ran("mm", policy, {tensor});
    Recompute recompute(cache);
    EXPECT_EQ(next(recompute, "mm"), saved ? text(tensor) : "runs");
  }
}

TEST_F(SelectiveTest, CallsAreCountedForEachOp) {
  const Tensor first = world.make(kBytes);
  const Tensor third = world.make(kBytes);
  const Tensor other = world.make(kBytes);
  forward().ran("mm", kMustSave, {first});
  cache->ran("mm", kMustRecompute, {world.make(kBytes)});
  cache->ran("exp", kMustSave, {other});
  cache->ran("mm", kMustSave, {third});
  EXPECT_EQ(cache->calls("mm"), 3u);
  EXPECT_EQ(cache->calls("exp"), 1u);
  EXPECT_EQ(cache->calls("log"), 0u);
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "exp"), text(other));
  EXPECT_EQ(next(recompute, "mm"), text(first));
  EXPECT_EQ(next(recompute, "mm"), "runs");
  EXPECT_EQ(next(recompute, "mm"), text(third));
}

TEST_F(SelectiveTest, AllOutputsComeBack) {
  const Tensor one = world.make(kBytes);
  const Tensor two = world.make(2 * kBytes);
  forward().ran("attention", kMustOffload, {one, 7, two});
  cache->ran("nothing", kMustSave, {});
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "attention"), text(one) + " 7 " + text(two));
  EXPECT_EQ(next(recompute, "nothing"), "");
}

TEST_F(SelectiveTest, WhatComesBackIsNotForwardsTensor) {
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kMustSave, {tensor});
  Recompute recompute(cache);
  const auto outputs = recompute.next("mm", [] { return kMustSave; });
  EXPECT_NE(std::get<Tensor>(outputs->at(0)), tensor);
  EXPECT_EQ(std::get<Tensor>(outputs->at(0))->storage, tensor->storage);
}

TEST_F(SelectiveTest, ASavedOutputIsLetGoWhenItIsTaken) {
  forward().ran("mm", kMustSave, {world.make(kBytes)});
  cache->ran("exp", kMustRecompute, {world.make(kBytes)});
  EXPECT_EQ(world.machine().live_storages(), 1);
  Recompute recompute(cache);
  recompute.next("mm", [] { return kMustSave; });
  EXPECT_EQ(world.machine().live_storages(), 0);
}

TEST_F(SelectiveTest, ARegionIsRunBackwardThroughOnce) {
  forward().ran("exp", kPreferRecompute, {});
  cache->ran("mm", kMustSave, {world.make(kBytes)});
  Recompute first(cache);
  next(first, "exp");
  next(first, "mm");
  Recompute second(cache);
  EXPECT_EQ(next(second, "exp"), "runs");
  EXPECT_EQ(next(second, "mm"),
            "Trying to backward an extra time. You are only allowed to backward once on any region "
            "computed under selective activation checkpoint.");
}

TEST_F(SelectiveTest, WhatTheFirstRecomputeDidNotReachServesTheSecond) {
  const Tensor late = world.make(kBytes);
  forward().ran("exp", kPreferRecompute, {});
  cache->ran("mm", kMustSave, {late});
  Recompute first(cache);
  next(first, "exp");
  Recompute second(cache);
  EXPECT_EQ(next(second, "mm"), text(late));
}

TEST_F(SelectiveTest, ACallThatForwardDidNotHaveIsRefusedWhereThePolicyKeepsItOrKeptAnother) {
  const std::string why =
      " encountered during backward but not found in storage. This can happen if the operations in "
      "the checkpointed region are nondeterministic or depend on global state that changed between "
      "forward and backward.";
  forward().ran("aten::mm", kMustRecompute, {});
  cache->ran("aten::sin", kMustRecompute, {});
  cache->ran("aten::sin", kMustSave, {world.make(kBytes)});
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "aten::exp", kPreferRecompute), "runs");
  EXPECT_EQ(next(recompute, "aten::exp", kPreferSave), "aten::exp" + why);
  EXPECT_EQ(next(recompute, "aten::mm"), "runs");
  EXPECT_EQ(next(recompute, "aten::mm", kMustRecompute), "runs");
  EXPECT_EQ(next(recompute, "aten::mm", kMustOffload), "aten::mm invocation index 2" + why);
  next(recompute, "aten::sin");
  next(recompute, "aten::sin");
  EXPECT_EQ(next(recompute, "aten::sin"), "aten::sin invocation index 2" + why);
}

TEST_F(SelectiveTest, AWrittenTensorIsRefusedAndStaysSo) {
  const Tensor one = world.make(kBytes);
  const Tensor two = world.make(kBytes);
  forward().ran("mm", kMustSave, {one, two});
  world.write(two);
  for (int i = 0; i < 2; ++i) {
    Recompute recompute(cache);
    EXPECT_EQ(next(recompute, "mm"),
              "Tensor cached during selective activation checkpoint has been mutated");
  }
}

TEST_F(SelectiveTest, AWrittenTensorComesBackAsItIsWhereThatIsAllowed) {
  const Tensor tensor = world.make(kBytes);
  forward(/*allow_mutation=*/true).ran("mm", kMustSave, {tensor});
  world.write(tensor);
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "mm"), text(tensor));
}

TEST_F(SelectiveTest, OffloadedOutputsAreTheHooksAroundIt) {
  push(elsewhere);
  push(std::make_shared<OfCheckpoint>());
  push(std::make_shared<OfCheckpoint>());
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kPreferOffload, {tensor});
  cache->ran("exp", kMustSave, {tensor});
  EXPECT_EQ(elsewhere->held, 1);
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "mm"), text(tensor));
  EXPECT_EQ(elsewhere->unpacked, 1);
  EXPECT_EQ(elsewhere->held, 0);
}

TEST_F(SelectiveTest, OffloadedOutputsOfARecomputesCheckpointAreKept) {
  push(elsewhere);
  CheckpointContext context;
  context.recomputing = true;
  stack.checkpoint = std::make_shared<const CheckpointContext>(context);
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kMustOffload, {tensor});
  EXPECT_EQ(elsewhere->held, 0);
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "mm"), text(tensor));
}

TEST_F(SelectiveTest, WhatTheHooksDeclineIsKept) {
  elsewhere->declines = true;
  push(elsewhere);
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kMustOffload, {tensor});
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "mm"), text(tensor));
}

TEST_F(SelectiveTest, AnOffloadedTensorThatWasWrittenIsRefused) {
  push(elsewhere);
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kMustOffload, {tensor});
  world.write(tensor);
  Recompute recompute(cache);
  EXPECT_EQ(next(recompute, "mm"),
            "Tensor cached during selective activation checkpoint has been mutated");
  EXPECT_EQ(elsewhere->unpacked, 0);
}

TEST_F(SelectiveTest, WhatDidNotComeBackCanBeAskedForAgain) {
  push(elsewhere);
  const Tensor tensor = world.make(kBytes);
  forward().ran("mm", kMustOffload, {tensor});
  elsewhere->fails = true;
  Recompute first(cache);
  EXPECT_EQ(next(first, "mm"), "the host is gone");
  elsewhere->fails = false;
  Recompute second(cache);
  EXPECT_EQ(next(second, "mm"), text(tensor));
}

}  // namespace
}  // namespace ferry
