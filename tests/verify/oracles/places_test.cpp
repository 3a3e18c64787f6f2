#include "verify/oracles/places.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/gpu/device.h"

namespace ferry::verify {
namespace {

// Two devices, each with its compute stream, and a stretch of memory of each.
class PlacesTest : public testing::Test {
 protected:
  static constexpr Range kInput{0x1000, 64}, kWeight{0x2000, 64}, kMade{0x3000, 64};
  static constexpr Range kOther{0x4000, 64};

  PlacesTest() {
    for (const Range& range : {kInput, kWeight, kMade}) allocate(0, range);
    allocate(1, kOther);
    places_.input(kInput, 2);
  }
  static sim::MachineOptions two() {
    sim::MachineOptions options;
    options.devices = 2;
    return options;
  }
  StreamId stream(std::uint32_t device) {
    sim::SimDevice on(machine_, device);
    return on.compute_stream();
  }
  void give(StreamOpKind kind, std::uint32_t device, const std::string& name,
            const std::vector<Range>& reads, const std::vector<Range>& writes) {
    StreamOp op;
    op.kind = kind;
    op.stream = stream(device);
    op.name = name;
    op.reads = reads;
    op.writes = writes;
    places_(op);
  }
  void allocate(std::uint32_t device, const Range& range) {
    StreamOp op;
    op.kind = StreamOpKind::kAlloc;
    op.stream = stream(device);
    op.range = range;
    places_(op);
  }
  void pass(StreamOpKind kind, Step step) {
    StreamOp op;
    op.kind = kind;
    op.step = step;
    op.stream = stream(0);
    op.event = EventId{7};
    places_(op);
  }
  void kernel(std::uint32_t device, const std::string& name, const std::vector<Range>& reads,
              const std::vector<Range>& writes) {
    give(StreamOpKind::kKernel, device, name, reads, writes);
  }

  sim::Machine machine_{two()};
  Places places_{machine_};
};

TEST_F(PlacesTest, AKernelUsesTheMemoryOfItsOwnDevice) {
  kernel(0, "layer0", {kInput, kWeight}, {kMade});
  give(StreamOpKind::kCopy, 1, "", {kMade}, {kOther});  // a copy may cross
  EXPECT_EQ(places_.misplaced(), "");
  kernel(1, "layer1", {kMade}, {kOther});
  EXPECT_EQ(places_.misplaced(), "`layer1` runs on device 1 with memory of device 0");
}

TEST_F(PlacesTest, WhatIsMadeOfAMicroBatchIsItsOwn) {
  kernel(0, "layer0", {kWeight, kInput}, {kMade});
  give(StreamOpKind::kCopy, 1, "", {kMade}, {kOther});
  kernel(1, "layer1", {kOther}, {kOther});
  EXPECT_EQ(places_.order("layer1"), std::vector<std::size_t>{2});
  allocate(0, kInput);  // the bytes are another tensor's now
  kernel(0, "layer0", {kInput}, {kMade});
  EXPECT_EQ(places_.order("layer0"), std::vector<std::size_t>{2});
}

TEST_F(PlacesTest, ARecomputeComesBeforeTheWaitForItsGradients) {
  const auto again = [&] { kernel(0, "layer0", {kInput}, {kMade}); };
  const auto gradients_arrive = [&] {
    give(StreamOpKind::kCopy, 0, "", {kInput}, {kMade});
    pass(StreamOpKind::kRecord, Step::kReceived);
    pass(StreamOpKind::kWait, Step::kTakeReceived);
  };
  again();  // the forward
  again();
  gradients_arrive();
  kernel(0, "grad0.0", {kInput}, {kMade});
  EXPECT_EQ(places_.late(), "");
  again();  // the next step's forward, which waits for what it is given
  gradients_arrive();
  again();
  EXPECT_EQ(places_.late(),
            "`layer0` of micro-batch 2 is recomputed after its stream waited for gradients");
}

// Where nothing has a gradient, no kernel of a backward says that it is over.
TEST_F(PlacesTest, AStepAndABackwardAreToldWhereTheyBegin) {
  const auto gradients_arrive = [&] {
    give(StreamOpKind::kCopy, 0, "", {kInput}, {kMade});
    pass(StreamOpKind::kRecord, Step::kReceived);
    pass(StreamOpKind::kWait, Step::kTakeReceived);
  };
  const auto forward = [&] { kernel(0, "layer0", {kInput}, {kMade}); };
  forward();
  gradients_arrive();
  places_.step_begins();
  forward();
  EXPECT_EQ(places_.late(), "") << "it runs for the first time";
  gradients_arrive();
  places_.backward_begins();
  forward();
  EXPECT_EQ(places_.late(), "") << "these gradients were another backward's";
  gradients_arrive();
  forward();
  EXPECT_NE(places_.late(), "");
}

TEST_F(PlacesTest, HowManyGoForwardBeforeTheFirstGoesBackward) {
  constexpr Range kThird{70'000, 512}, kFourth{80'000, 512};
  for (const Range& range : {kThird, kFourth}) allocate(0, range);
  places_.input(kThird, 3);
  places_.input(kFourth, 4);
  kernel(0, "layer0", {kInput}, {kMade});
  kernel(0, "layer0", {kInput}, {kMade});  // again
  EXPECT_EQ(places_.ahead(0), std::nullopt);
  kernel(0, "layer0", {kThird}, {kMade});
  kernel(0, "grad0.0", {kInput}, {kMade});
  kernel(0, "layer0", {kFourth}, {kMade});
  kernel(0, "grad0.0", {kThird}, {kMade});
  EXPECT_EQ(places_.ahead(0), 2u);
  EXPECT_EQ(places_.ahead(1), std::nullopt);
}

}  // namespace
}  // namespace ferry::verify
