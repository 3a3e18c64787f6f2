#include "shared/seam/hooks.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/seam/slot.h"

namespace ferry {
namespace {

using test::Slot;
using Tensor = Slot::Tensor;

struct Text final : Saved<Tensor> {
  explicit Text(Tensor saved) : text(std::move(saved)) {}
  Tensor unpack() override { return text; }
  Tensor text;
};

struct Named final : Hooks<Tensor> {
  explicit Named(std::string pair) : name(std::move(pair)) {}
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    return std::make_unique<Text>(name + "(" + tensor + ")");
  }
  std::string name;
};

class HooksTest : public ::testing::Test {
 protected:
  using Guard = HooksGuard<Slot>;
  using NoGuard = NoHooksGuard<Slot>;
  using Disable = DisableHooksGuard<Slot>;

  Slot slot() { return {&stack}; }
  static std::shared_ptr<Named> pair(std::string name) { return std::make_shared<Named>(name); }
  // What a save of "x" becomes; "-": no pair applies.
  std::string packed() const {
    const auto saved = stack.pack("x");
    return saved ? saved->unpack() : "-";
  }
  std::string message_of_push() {
    try {
      const Guard guard(slot(), pair("late"));
    } catch (const HooksDisabled& error) {
      return error.what();
    }
    return "none";
  }

  HookStack<Tensor> stack;
};

TEST_F(HooksTest, WithoutAPairNothingIsPacked) { EXPECT_EQ(packed(), "-"); }

TEST_F(HooksTest, TheInnermostPairAloneApplies) {
  const Guard outer(slot(), pair("outer"));
  EXPECT_EQ(packed(), "outer(x)");
  {
    const Guard inner(slot(), pair("inner"));
    EXPECT_EQ(packed(), "inner(x)");
  }
  EXPECT_EQ(packed(), "outer(x)");
}

TEST_F(HooksTest, ANoOpFrameHidesThePairsOutsideIt) {
  const Guard outer(slot(), pair("outer"));
  {
    const NoGuard none(slot());
    EXPECT_EQ(packed(), "-");
    const Guard inner(slot(), pair("inner"));
    EXPECT_EQ(packed(), "inner(x)");
  }
  EXPECT_EQ(packed(), "outer(x)");
}

TEST_F(HooksTest, AnExceptionRestoresTheStack) {
  const Guard outer(slot(), pair("outer"));
  try {
    const Guard inner(slot(), pair("inner"));
    const NoGuard none(slot());
    throw std::runtime_error("in user code");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(packed(), "outer(x)");
}

TEST_F(HooksTest, WhileDisabledAPushThrowsTheMessage) {
  const Disable disable(slot(), "no hooks here");
  EXPECT_EQ(message_of_push(), "no hooks here");
  EXPECT_EQ(packed(), "-");
}

TEST_F(HooksTest, AFailedPushLeavesTheStackAsItWas) {
  {
    const Disable disable(slot(), "no hooks here");
    EXPECT_THROW(Guard(slot(), pair("late")), HooksDisabled);
    EXPECT_EQ(stack.top, nullptr);
  }
  EXPECT_EQ(stack.disabled, nullptr);
  const Guard guard(slot(), pair("again"));
  EXPECT_EQ(packed(), "again(x)");
}

TEST_F(HooksTest, WhileDisabledANoOpFrameIsAllowed) {
  const Disable disable(slot(), "no hooks here");
  const NoGuard none(slot());
  EXPECT_EQ(packed(), "-");
}

TEST_F(HooksTest, DisablingWhereAPairAppliesThrowsTheMessage) {
  const Guard outer(slot(), pair("outer"));
  EXPECT_THROW(Disable(slot(), "too late"), HooksDisabled);
  EXPECT_EQ(packed(), "outer(x)");
  const Guard inner(slot(), pair("inner"));
  EXPECT_EQ(packed(), "inner(x)");
}

TEST_F(HooksTest, ANestedDisableRestoresTheOuterMessage) {
  {
    const Disable outer(slot(), "outer message");
    {
      const Disable inner(slot(), "inner message");
      EXPECT_EQ(message_of_push(), "inner message");
    }
    EXPECT_EQ(message_of_push(), "outer message");
  }
  EXPECT_EQ(message_of_push(), "none");
}

// A world's scope may hold any stack, also one that its program did not push.
TEST_F(HooksTest, WhileDisabledNoPairAppliesWhoeverPushedIt) {
  stack.top = std::make_shared<const HookFrame<Tensor>>(HookFrame<Tensor>{pair("old"), nullptr});
  EXPECT_EQ(packed(), "old(x)");
  stack.disabled = std::make_shared<const std::string>("no hooks here");
  EXPECT_EQ(packed(), "-");
}

// As a graph task does, which carries the slot of the thread that began it.
TEST_F(HooksTest, ACopyOfTheSlotIsASnapshot) {
  HookStack<Tensor> travelling;
  {
    const Guard guard(slot(), pair("then"));
    travelling = stack;
  }
  EXPECT_EQ(packed(), "-");
  EXPECT_EQ(travelling.pack("x")->unpack(), "then(x)");
}

TEST_F(HooksTest, APairOutlivesItsGuardWhereASaveNeedsIt) {
  std::unique_ptr<Saved<Tensor>> saved;
  {
    const Guard guard(slot(), pair("gone"));
    saved = stack.pack("x");
  }
  EXPECT_EQ(saved->unpack(), "gone(x)");
  EXPECT_EQ(saved->unpack(), "gone(x)");
}

TEST_F(HooksTest, PoppingSomeoneElsesFrameStopsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  { const Guard own(slot(), pair("own")); }
  EXPECT_EQ(packed(), "-");
  EXPECT_DEATH(
      {
        std::optional<Guard> outer(std::in_place, slot(), pair("outer"));
        const Guard inner(slot(), pair("inner"));
        outer.reset();
      },
      "");
}

// A pack that leaves its own region (torch.utils.checkpoint does so) must not lose the ground it
// stands on.
TEST_F(HooksTest, APairThatPopsItselfDuringPackSurvives) {
  struct Leaving final : Hooks<Tensor> {
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      guard->reset();
      return std::make_unique<Text>(name + "(" + tensor + ")");
    }
    std::optional<Guard>* guard = nullptr;
    std::string name = "leaving";
  };
  std::optional<Guard> guard;
  {
    auto leaving = std::make_shared<Leaving>();
    leaving->guard = &guard;
    guard.emplace(slot(), std::move(leaving));
  }
  EXPECT_EQ(packed(), "leaving(x)");
  EXPECT_EQ(packed(), "-");
}

TEST_F(HooksTest, ModifiedInPlaceSpeaksAsAutogradDoes) {
  EXPECT_STREQ(ModifiedInPlace(3, 1).what(),
               "one of the variables needed for gradient computation has been modified by an "
               "inplace operation: it is at version 3; expected version 1 instead");
}

}  // namespace
}  // namespace ferry
