// Trackers: what is stashed is popped once, who is in force, and what a region that runs again
// finds.
#include "shared/skip/tracker.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace ferry {

template <>
struct Exceptions<std::shared_ptr<std::string>> : Exceptions<void> {};

namespace {

// A slot with a hook stack is all that the guards ask for.
struct Slot {
  HookStack<int> stack;
};
struct SlotAutograd {
  using Tensor = int;
  using Value = std::shared_ptr<std::string>;
  Slot* slot;
  HookStack<int> hooks() const { return slot->stack; }
  struct HooksScope : ReplacedHooks<int> {
    HooksScope(SlotAutograd autograd, HookStack<int> next)
        : ReplacedHooks(autograd.slot->stack, std::move(next)) {}
  };
};
using Value = SlotAutograd::Value;
using Plain = PlainSkips<Value>;

Value value(const char* text) { return std::make_shared<std::string>(text); }

TEST(PlainSkips, PopsOnceWhatWasStashed) {
  Plain skips;
  skips.save({"x"}, value("1"));
  EXPECT_FALSE(skips.empty());
  EXPECT_EQ(*skips.load({"x"}), "1");
  EXPECT_TRUE(skips.empty());
  EXPECT_THROW(skips.load({"x"}), SkipError);
}

TEST(PlainSkips, ALaterStashReplacesAnEarlierOne) {
  Plain skips;
  skips.save({"x"}, value("1"));
  skips.save({"x"}, value("2"));
  EXPECT_EQ(*skips.load({"x"}), "2");
}

TEST(PlainSkips, NoneIsAValue) {
  Plain skips;
  skips.save({"x"}, nullptr);
  EXPECT_EQ(skips.load({"x"}), nullptr);
}

TEST(SkipTrackerGuard, NestsAndRestoresAlsoAfterAnException) {
  Slot slot;
  const SlotAutograd autograd{&slot};
  const auto thread = current_skip_tracker(autograd);
  EXPECT_EQ(current_skip_tracker(autograd), thread);
  const auto outer = std::make_shared<Plain>();
  const auto inner = std::make_shared<Plain>();
  {
    const SkipTrackerGuard<SlotAutograd> guard(autograd, outer);
    EXPECT_EQ(current_skip_tracker(autograd), outer);
    try {
      const SkipTrackerGuard<SlotAutograd> nested(autograd, inner);
      EXPECT_EQ(current_skip_tracker(autograd), inner);
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(current_skip_tracker(autograd), outer);
  }
  EXPECT_EQ(current_skip_tracker(autograd), thread);
}

TEST(SkipTrackerGuard, AContextWithoutATrackerLeavesTheThreadsOwn) {
  Slot slot;
  const SlotAutograd autograd{&slot};
  const auto thread = current_skip_tracker(autograd);
  slot.stack.checkpoint = std::make_shared<const CheckpointContext>();
  EXPECT_EQ(current_skip_tracker(autograd), thread);
}

class RegionTest : public testing::Test {
 protected:
  SkipTracker<Value>& tracker(const std::shared_ptr<SkipScope>& scope) {
    return static_cast<SkipTracker<Value>&>(*scope);
  }
  const std::shared_ptr<Plain> outer_ = std::make_shared<Plain>();
  SkipRegion region_ = skip_region<Value>(outer_, [this](const Value& popped) {
    return [this, popped] {
      if (written_) throw std::runtime_error("written");
      return popped;
    };
  });
  bool written_ = false;
};

TEST_F(RegionTest, WhatItPoppedIsThereEachTimeItRunsAgain) {
  outer_->save({"x"}, value("1"));
  EXPECT_EQ(*tracker(region_.first).load({"x"}), "1");
  EXPECT_TRUE(outer_->empty());
  for (int times = 0; times < 3; ++times) {
    EXPECT_EQ(*tracker(region_.again()).load({"x"}), "1");
  }
}

TEST_F(RegionTest, WhatItPoppedAndWasWrittenSinceIsRefused) {
  outer_->save({"x"}, value("1"));
  tracker(region_.first).load({"x"});
  written_ = true;
  EXPECT_THROW(tracker(region_.again()).load({"x"}), std::runtime_error);
}

TEST_F(RegionTest, WhatItStashedIsStashedOnce) {
  tracker(region_.first).save({"x"}, value("1"));
  tracker(region_.again()).save({"x"}, value("again"));
  EXPECT_EQ(*outer_->load({"x"}), "1");
  EXPECT_TRUE(outer_->empty());
}

TEST_F(RegionTest, WhatItStashedAndPoppedIsItsOwnEachTime) {
  for (const auto& scope : {region_.first, region_.again(), region_.again()}) {
    tracker(scope).save({"x"}, value("own"));
    EXPECT_EQ(*tracker(scope).load({"x"}), "own");
    EXPECT_THROW(tracker(scope).load({"x"}), SkipError);
  }
}

TEST_F(RegionTest, ItOwnsWhatItPoppedAndNoMore) {
  const Value kept = value("1");
  outer_->save({"x"}, kept);
  tracker(region_.first).load({"x"});
  tracker(region_.again()).save({"y"}, kept);
  EXPECT_EQ(kept.use_count(), 2);  // here, and the region's
  region_ = {};
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace ferry
