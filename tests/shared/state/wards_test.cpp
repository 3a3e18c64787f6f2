// Wards, by hand: what is brought when, what stays for how long, and what an error leaves.
#include "shared/state/wards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/adaptors/observed.h"
#include "tests/sim/support/world.h"

namespace ferry::test {
namespace {

constexpr std::int64_t kBytes = 1 << 20;
using Kind = WardDecisionKind;
using Decisions = std::vector<std::pair<Kind, int>>;  // with the ward's number

class WardsTest : public testing::Test {
 protected:
  using Device = Faulty<Counted<sim::SimDevice>>;

  // Makes wards whose bytes are on the host, in an order that the next step brings ahead.
  void begin(int count, std::optional<std::int64_t> ahead, std::optional<std::int64_t> behind) {
    WardOptions options;
    options.ahead_bytes = ahead;
    options.behind_bytes = behind;
    options.log = [this](const WardDecision& decision) {
      decisions_.emplace_back(decision.kind, static_cast<int>(decision.ward));
    };
    const auto fault = std::make_shared<FaultPoint>([this](Step step) {
      return fails_ == step && std::exchange(fails_, std::nullopt).has_value();
    });
    wards_.emplace(Device(Counted<sim::SimDevice>(world_.device(), calls_), fault), options);
    for (int i = 0; i < count; ++i) {
      const sim::Tensor state = world_.make(kBytes);
      contents_.push_back(world_.contents(state));
      ids_.push_back(wards_->add(state->storage));
      wards_->written(ids_.back());
    }
    wards_->end_step();
    decisions_.clear();
  }
  sim::Tensor take(int number) { return on(wards_->take(id(number))); }
  sim::Tensor on(const sim::Storage& storage) {
    const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kU8, {kBytes}), {0, kBytes}});
    return sim::make_tensor(storage, {window, 0}, world_.machine().new_version());
  }
  void update(int number) {
    const sim::Tensor tensor = take(number);
    EXPECT_EQ(world_.contents(tensor), contents_[static_cast<std::size_t>(number)]);
    world_.use(tensor);
    world_.write(tensor);
    contents_[static_cast<std::size_t>(number)] = world_.contents(tensor);
    wards_->written(ids_[static_cast<std::size_t>(number)]);
  }
  WardId id(int number) const { return ids_[static_cast<std::size_t>(number)]; }
  std::int64_t made(Step step) const { return calls_->of(step).calls; }
  void end() {
    wards_.reset();
    world_.expect_clean();
  }

  World world_;
  const std::shared_ptr<CallCount> calls_ = std::make_shared<CallCount>();
  std::optional<Step> fails_;
  std::optional<Wards<Device>> wards_;
  std::vector<WardId> ids_;
  std::vector<std::uint64_t> contents_;
  Decisions decisions_;
};

TEST_F(WardsTest, EachStepFindsWhatTheLastOneWrote) {
  begin(4, 2 * kBytes, kBytes);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) update(i);
    wards_->end_step();
  }
  end();
}

TEST_F(WardsTest, AreBroughtAheadInTheOrderOfTheLastStep) {
  begin(4, 2 * kBytes, 4 * kBytes);
  update(0);
  EXPECT_EQ(decisions_, (Decisions{{Kind::kBring, 0},
                                   {Kind::kTake, 0},
                                   {Kind::kAhead, 1},
                                   {Kind::kAhead, 2},
                                   {Kind::kReturn, 0}}));
  decisions_.clear();
  update(1);
  EXPECT_EQ(decisions_, (Decisions{{Kind::kTake, 1}, {Kind::kAhead, 3}, {Kind::kReturn, 1}}));
  end();
}

TEST_F(WardsTest, BeforeTheFirstIsTakenSomeMayBeBrought) {
  begin(3, 2 * kBytes, kBytes);
  wards_->bring_ahead();
  EXPECT_EQ(decisions_, (Decisions{{Kind::kAhead, 0}, {Kind::kAhead, 1}}));
  EXPECT_EQ(wards_->statistics().device_bytes, 2 * kBytes);
  update(0);
  EXPECT_EQ(made(Step::kBring), 3);
  end();
}

TEST_F(WardsTest, WithoutABoundNothingIsBroughtAhead) {
  begin(3, 0, 0);
  for (int i = 0; i < 3; ++i) update(i);
  EXPECT_EQ(wards_->statistics().ahead_count, 0);
  EXPECT_EQ(wards_->statistics().brought_count, 3);
  end();
}

TEST_F(WardsTest, ALargeOneIsAloneAhead) {
  begin(3, kBytes / 2, kBytes);
  wards_->bring_ahead();
  EXPECT_EQ(decisions_, (Decisions{{Kind::kAhead, 0}}));
  update(0);
  EXPECT_EQ(decisions_.back(), (Decisions::value_type{Kind::kReturn, 0}));
  EXPECT_EQ(wards_->statistics().ahead_count, 2);
  end();
}

TEST_F(WardsTest, ALimitThatNobodyChoseIsAnEighthOfTheirBytes) {
  begin(16, std::nullopt, std::nullopt);
  wards_->bring_ahead();
  EXPECT_EQ(wards_->statistics().device_bytes, 2 * kBytes);
  for (int i = 0; i < 8; ++i) update(i);
  EXPECT_EQ(wards_->statistics().device_bytes, 4 * kBytes);
  end();
}

TEST_F(WardsTest, AnotherOrderCostsOnlyTime) {
  begin(4, 2 * kBytes, kBytes);
  for (const int i : {2, 0, 3}) update(i);  // and 1 is not taken
  wards_->end_step();
  EXPECT_EQ(wards_->statistics().unused_count, 2);  // 3 after 2, and 1 after 0
  for (const int i : {2, 1, 0, 3}) update(i);
  wards_->end_step();
  decisions_.clear();
  wards_->bring_ahead();
  EXPECT_EQ(decisions_, (Decisions{{Kind::kAhead, 2}, {Kind::kAhead, 1}}));
  for (const int i : {2, 1, 0, 3}) update(i);
  end();
}

TEST_F(WardsTest, WhatNobodyTookLeavesAtTheEndOfTheStep) {
  begin(3, 4 * kBytes, kBytes);
  update(0);
  EXPECT_EQ(wards_->statistics().device_bytes, 3 * kBytes);
  wards_->end_step();
  EXPECT_EQ(wards_->statistics().unused_count, 2);
  EXPECT_EQ(wards_->statistics().device_bytes, 0);
  end();
}

TEST_F(WardsTest, AReturnedWardThatIsTakenAgainIsNotBroughtAgain) {
  begin(1, 0, kBytes);
  update(0);
  update(0);
  EXPECT_EQ(made(Step::kBring), 1);
  EXPECT_EQ(made(Step::kTakeReturned), 1);
  wards_->end_step();
  update(0);
  EXPECT_EQ(made(Step::kBring), 2);
  end();
}

TEST_F(WardsTest, WhatIsGivenBackIsAsItWas) {
  begin(1, 0, 0);
  {
    const sim::Tensor tensor = take(0);
    world_.write(tensor);
  }
  wards_->give_back(id(0), true);
  EXPECT_EQ(wards_->place(id(0)), WardPlace::kHome);
  update(0);  // compares its contents
  end();
}

TEST_F(WardsTest, AVisitMayLeaveTheOrderAsItWas) {
  begin(3, 3 * kBytes, 0);
  for (const int i : {2, 1, 0}) {
    take(i);
    wards_->give_back(id(i), true);
  }
  wards_->end_step(true);
  decisions_.clear();
  wards_->bring_ahead();
  EXPECT_EQ(decisions_.front(), (std::pair{Kind::kAhead, 0}));
  end();
}

TEST_F(WardsTest, WhatIsExpectedSoonStays) {
  begin(3, 2 * kBytes, 0);
  const auto visit = [&](int i) {
    world_.use(take(i));
    wards_->give_back(id(i), false);
  };
  for (int step = 0; step < 2; ++step) {
    for (const int i : {0, 1, 2, 2, 1, 0}) visit(i);
  }
  const std::int64_t brought = made(Step::kBring);
  decisions_.clear();
  for (const int i : {0, 1, 2, 2, 1, 0}) visit(i);
  EXPECT_EQ(made(Step::kBring), brought + 2);  // 2 in forward, 0 in backward; 1 stays
  EXPECT_EQ(std::count(decisions_.begin(), decisions_.end(), std::pair{Kind::kExpected, 1}), 2);
  end();
}

TEST_F(WardsTest, WhatWasWrittenAndGivenBackDoesNotStay) {
  begin(1, 2 * kBytes, 0);
  for (int step = 0; step < 3; ++step) {
    world_.write(take(0));
    wards_->give_back(id(0), true);
    EXPECT_EQ(wards_->place(id(0)), WardPlace::kHome);
  }
  update(0);
  end();
}

TEST_F(WardsTest, AnotherStreamMayShareAWard) {
  begin(2, 0, 0);
  const StreamId here = world_.stream(0), other = world_.stream(1);
  world_.use(take(0));
  world_.machine().set_current_stream(other);
  world_.use(on(wards_->share(id(0))));
  EXPECT_EQ(made(Step::kTakeBrought), 2);
  EXPECT_EQ(made(Step::kBroughtInUse), 1);
  world_.machine().set_current_stream(here);
  wards_->give_back(id(0), false);
  update(1);  // in the block of the first
  end();
}

TEST_F(WardsTest, OnAnotherStreamThePoolWaits) {
  begin(1, 0, 0);
  wards_->bring_ahead();
  take(0);
  EXPECT_EQ(made(Step::kBroughtInUse), 0);
  const StreamId other = world_.stream(1);
  world_.machine().wait(Step::kUser, other, world_.machine().record(Step::kUser, world_.stream(0)));
  world_.machine().set_current_stream(other);
  world_.use(take(0));
  EXPECT_EQ(made(Step::kBroughtInUse), 1);
  wards_->give_back(id(0), true);
  end();
}

TEST_F(WardsTest, IfTheDeviceIsFullWhatIsAheadMakesRoom) {
  begin(4, 2 * kBytes, 3 * kBytes);
  update(0);
  EXPECT_EQ(wards_->statistics().device_bytes, 3 * kBytes);
  fails_ = Step::kBringAllocate;
  const std::int64_t left = made(Step::kLeave);
  update(3);
  EXPECT_EQ(made(Step::kLeave), left + 1);
  EXPECT_EQ(wards_->statistics().unused_count, 2);
  for (int i = 0; i < 4; ++i) update(i);
  end();
}

TEST_F(WardsTest, AnErrorReachesTheCallerAndTheNextTryWorks) {
  begin(1, 0, 0);
  for (const Step step :
       {Step::kBringAllocate, Step::kVacant, Step::kBringAfterVacant, Step::kBringAfterReturned,
        Step::kBring, Step::kBrought, Step::kTakeBrought}) {
    fails_ = step;
    EXPECT_THROW(take(0), InjectedFault) << name(step);
    EXPECT_EQ(wards_->statistics().device_bytes, 0) << name(step);
  }
  update(0);
  for (const Step step :
       {Step::kUpdated, Step::kReturnAfterUpdated, Step::kReturn, Step::kReturned}) {
    const sim::Tensor tensor = take(0);
    world_.write(tensor);
    contents_[0] = world_.contents(tensor);
    fails_ = step;
    EXPECT_THROW(wards_->written(id(0)), InjectedFault) << name(step);
    EXPECT_EQ(wards_->statistics().device_bytes, kBytes) << name(step);
    wards_->give_back(id(0), true);  // it stays: the host may not have its bytes
    EXPECT_EQ(wards_->place(id(0)), WardPlace::kKept) << name(step);
    update(0);
  }
  end();
}

TEST_F(WardsTest, AWardThatCannotLeaveIsKept) {
  begin(2, 0, kBytes);
  update(0);
  fails_ = Step::kLeave;
  EXPECT_THROW(update(1), InjectedFault);
  contents_[1] = 0;
  EXPECT_EQ(wards_->place(id(0)), WardPlace::kKept);
  EXPECT_EQ(wards_->place(id(1)), WardPlace::kLeaving);
  update(0);
  end();
}

TEST_F(WardsTest, IfTheHostIsFullThereIsNoWard) {
  begin(1, 0, 0);
  const sim::Tensor state = world_.make(kBytes);
  fails_ = Step::kHostAllocate;
  EXPECT_THROW(wards_->add(state->storage), InjectedFault);
  EXPECT_EQ(wards_->statistics().wards, 1);
  EXPECT_EQ(wards_->statistics().host_bytes, kBytes);
  wards_.reset();
}

using WardsDeathTest = WardsTest;

TEST_F(WardsDeathTest, AWardIsUsedWhileThereIsOne) {
  begin(1, 0, 0);
  wards_->remove(id(0));
  EXPECT_DEATH(wards_->take(id(0)), "a ward is used from its `add` to its `remove`");
  EXPECT_DEATH(wards_->remove(id(0)), "a ward is used from its `add` to its `remove`");
}

TEST_F(WardsDeathTest, AWardIsTakenBeforeItIsWritten) {
  begin(1, 0, 0);
  EXPECT_DEATH(wards_->written(id(0)), "a ward is taken before it is written or given back");
  EXPECT_DEATH(wards_->give_back(id(0), true),
               "a ward is taken before it is written or given back");
}

}  // namespace
}  // namespace ferry::test
