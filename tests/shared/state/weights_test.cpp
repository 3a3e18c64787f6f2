// Frozen weights, by hand: who holds what, and what a reference keeps.
#include "shared/state/weights.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/adaptors/observed.h"
#include "tests/sim/support/world.h"

namespace ferry::test {
namespace {

constexpr std::int64_t kWeightBytes = 1 << 20;

class WeightsTest : public testing::Test {
 protected:
  using Device = Faulty<Counted<sim::SimDevice>>;

  void begin(int count, std::int64_t ahead) {
    const auto fault = std::make_shared<FaultPoint>([this](Step step) {
      return fails_ == step && std::exchange(fails_, std::nullopt).has_value();
    });
    weights_ = std::make_shared<Weights<Device>>(
        Device(Counted<sim::SimDevice>(world_.device(), calls_), fault),
        WardOptions{.ahead_bytes = ahead});
    for (int i = 0; i < count; ++i) {
      const sim::Tensor weight = world_.make(kWeightBytes);
      contents_.push_back(world_.contents(weight));
      ids_.push_back(weights_->add(weight->storage));
    }
  }
  sim::Tensor hold(std::size_t number) {
    const sim::Storage storage = weights_->hold(ids_[number]);
    const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kU8, {kWeightBytes}), {0, kWeightBytes}});
    const sim::Tensor tensor =
        sim::make_tensor(storage, {window, 0}, world_.machine().new_version());
    EXPECT_EQ(world_.contents(tensor), contents_[number]);
    world_.use(tensor);
    return tensor;
  }
  // A module's forward. Returns what is saved.
  std::unique_ptr<Saved<sim::Tensor>> forward(std::size_t number) {
    auto saved = weights_->refer(ids_[number], hold(number));
    weights_->release(ids_[number]);
    return saved;
  }
  std::int64_t on_device() const { return weights_->statistics().device_bytes / kWeightBytes; }
  std::int64_t made(Step step) const { return calls_->of(step).calls; }
  void end() {
    weights_.reset();
    world_.expect_clean();
  }

  World world_;
  const std::shared_ptr<CallCount> calls_ = std::make_shared<CallCount>();
  std::optional<Step> fails_;
  std::shared_ptr<Weights<Device>> weights_;
  std::vector<WardId> ids_;
  std::vector<std::uint64_t> contents_;
};

TEST_F(WeightsTest, AReferenceHasBytesOnlyFromItsUnpackingOn) {
  begin(2, 0);
  EXPECT_EQ(on_device(), 0);
  auto first = forward(0), second = forward(1);
  EXPECT_EQ(on_device(), 0);
  EXPECT_EQ(world_.contents(second->unpack()), contents_[1]);
  EXPECT_EQ(on_device(), 1);
  second.reset();
  EXPECT_EQ(on_device(), 0);
  first.reset();
  EXPECT_EQ(made(Step::kBring), 3);
  end();
}

TEST_F(WeightsTest, HoldersShareOneStorage) {
  begin(1, 0);
  const auto saved = forward(0);
  const sim::Tensor held = hold(0);
  EXPECT_EQ(saved->unpack()->storage, held->storage);
  EXPECT_EQ(saved->unpack()->storage, held->storage);  // of a graph that is kept
  weights_->release(ids_[0]);
  EXPECT_EQ(on_device(), 1);
  EXPECT_EQ(made(Step::kBring), 2);
}

TEST_F(WeightsTest, WhatBackwardNeedsFirstStaysAfterForward) {
  begin(3, kWeightBytes);
  const auto step = [&] {
    std::vector<std::unique_ptr<Saved<sim::Tensor>>> saved;
    for (std::size_t i = 0; i < 3; ++i) saved.push_back(forward(i));
    for (; !saved.empty(); saved.pop_back()) world_.use(saved.back()->unpack());
  };
  step();
  step();
  const std::int64_t brought = made(Step::kBring);
  step();
  EXPECT_EQ(made(Step::kBring), brought + 4);  // 0 and 2 are used twice on end
  end();
}

TEST_F(WeightsTest, AReferenceOutlivesItsWeight) {
  begin(1, 0);
  auto saved = forward(0);
  weights_->remove(ids_[0]);
  EXPECT_EQ(weights_->statistics().wards, 1);
  EXPECT_EQ(world_.contents(saved->unpack()), contents_[0]);
  saved.reset();
  EXPECT_EQ(weights_->statistics().wards, 0);
  end();
}

TEST_F(WeightsTest, AWriteAfterTheSaveIsTold) {
  begin(1, 0);
  const sim::Tensor held = hold(0);
  const auto saved = weights_->refer(ids_[0], held);
  world_.write(held);
  EXPECT_THROW(saved->unpack(), ModifiedInPlace);
  weights_->release(ids_[0]);
}

TEST_F(WeightsTest, AnErrorHoldsNothingAndTheNextTryWorks) {
  begin(1, 0);
  auto saved = forward(0);
  for (const Step step : {Step::kBringAllocate, Step::kVacant, Step::kBring, Step::kTakeBrought}) {
    fails_ = step;
    EXPECT_THROW(hold(0), InjectedFault) << name(step);
    fails_ = step;
    EXPECT_THROW(saved->unpack(), InjectedFault) << name(step);
    EXPECT_EQ(on_device(), 0) << name(step);
  }
  for (const Step step : {Step::kHostAllocate, Step::kUpdated, Step::kReturn, Step::kReturned}) {
    const sim::Tensor weight = world_.make(kWeightBytes);
    fails_ = step;
    EXPECT_THROW(weights_->add(weight->storage), InjectedFault) << name(step);
    EXPECT_EQ(weights_->statistics().wards, 1) << name(step);
  }
  hold(0);
  weights_->release(ids_[0]);
  saved.reset();
  end();
}

using WeightsDeathTest = WeightsTest;

TEST_F(WeightsDeathTest, AWeightIsUsedWhileThereIsOne) {
  begin(1, 0);
  weights_->remove(ids_[0]);
  EXPECT_DEATH(weights_->hold(ids_[0]), "a weight is used from its `add` to its `remove`");
}

TEST_F(WeightsDeathTest, AWeightIsHeldBeforeItIsReleased) {
  begin(1, 0);
  EXPECT_DEATH(weights_->release(ids_[0]), "a weight is held before it is released");
}

}  // namespace
}  // namespace ferry::test
