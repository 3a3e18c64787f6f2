// What a frame refuses, and what it lets pass.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/checkpoint/frame.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {
namespace {

class FrameRefusalTest : public FrameTest {
 protected:
  // What the run of a segment throws that saves two tensors, where its plan has so many.
  std::string planned(std::optional<std::size_t> packs) {
    auto plan = std::make_shared<SegmentPlan>();
    plan->segments.emplace_back().packs = packs;
    CheckpointContext context;
    context.plan = std::make_shared<PlannedSegments>(plan);
    const CheckpointContextGuard<FrameAutograd> guard(autograd(), context);
    return error_of_run();
  }
  std::string error_of_run() {
    try {
      run_saving(2);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(FrameRefusalTest, ASegmentSavesWhatItsPlanStates) {
  EXPECT_EQ(planned(3),
            "ferry::checkpoint: the segment saved 2 tensors, and the plan in force has 3 for it");
  EXPECT_EQ(planned(2), "");
  EXPECT_EQ(planned(std::nullopt), "");
}

TEST_F(FrameRefusalTest, StateThatWasNotCapturedFailsForward) {
  thread.captured = false;
  EXPECT_EQ(error_of_run(), "the device came late");
}

TEST_F(FrameTest, DebugModeNamesTheOpsOfBoth) {
  CoreCheckpointOptions options;
  options.debug = true;
  Saves saves = run(
      [&](Saves& s) {
        op("mm");
        save(s, world.make(kBytes));
        op(again() ? "tanh" : "exp");
        if (!again()) save(s, world.make(kBytes));
      },
      options);
  script.backward([&] {
    EXPECT_EQ(error_of(saves, 0),
              checkpoint_text::debug(checkpoint_text::fewer(2, 1), {"mm", "exp"}, {"mm", "tanh"}));
  });
}

TEST_F(FrameTest, WithoutDebugModeTheErrorIsShort) {
  Saves saves = run([&](Saves& s) {
    save(s, world.make(kBytes));
    if (!again()) save(s, world.make(kBytes));
  });
  script.backward([&] { EXPECT_EQ(error_of(saves, 0), checkpoint_text::fewer(2, 1)); });
}

TEST_F(FrameTest, OtherMetadataIsToldTensorByTensor) {
  Saves saves = run([&](Saves& s) {
    save(s, world.make(again() ? kBytes : 2 * kBytes));
    save(s, world.make(kBytes));
    save(s, world.make(again() ? 3 * kBytes : kBytes));
  });
  script.backward([&] {
    EXPECT_EQ(error_of(saves, 1), checkpoint_text::different(
                                      {{0, "shape [8192], dtype u8", "shape [4096], dtype u8"},
                                       {2, "shape [4096], dtype u8", "shape [12288], dtype u8"}}));
  });
}

// The exception that ends a recompute is not the function's to keep.
TEST_F(FrameTest, AFunctionThatCatchesTheStopIsRefused) {
  const Body swallows = [this](Saves& s) {
    try {
      save(s, world.make(kBytes));
    } catch (const StopRecomputation& stop) {
      EXPECT_STREQ(stop.what(),
                   "ferry::checkpoint: everything is recomputed; let this exception pass");
    }
  };
  Saves returns = run(swallows);
  Saves saves_on = run(
      [&](Saves& s) {
        swallows(s);
        save(s, world.make(kBytes));
      },
      choosing({SavedChoice::kRecompute, SavedChoice::kKeep}));
  script.backward([&] {
    EXPECT_EQ(error_of(returns, 0), checkpoint_text::kSwallowed);
    EXPECT_EQ(error_of(saves_on, 0), checkpoint_text::kSwallowed);
  });
  EXPECT_EQ(checkpointer.statistics().stopped_early, 0);
}

// As an interpreter does that the function runs in.
TEST_F(FrameTest, AStopThatBecameAnErrorOfAnotherKindIsAStop) {
  Saves saves = run([&](Saves& s) {
    try {
      save(s, world.make(kBytes));
    } catch (const StopRecomputation&) {
      throw std::runtime_error("TorchScript interpreter failed");
    }
  });
  script.backward([&] { EXPECT_EQ(error_of(saves, 0), ""); });
  EXPECT_EQ(checkpointer.statistics().stopped_early, 1);
}

TEST_F(FrameTest, AnErrorBeforeTheStopIsTheFunctions) {
  Saves saves = run([&](Saves& s) {
    if (again()) throw std::runtime_error("mine");
    save(s, world.make(kBytes));
  });
  script.backward([&] { EXPECT_EQ(error_of(saves, 0), "mine"); });
  EXPECT_EQ(checkpointer.statistics().stopped_early, 0);
}

// While the outer function runs again it needs the inner one's tensor. The inner function, run
// again for that, saves under the outer run's hooks: that was all the outer one still had to do.
TEST_F(FrameTest, AStopEndsNoRecomputeButItsOwn) {
  HookStack<Tensor> of_outer;
  Saves inner = run([&](Saves& s) {
    std::optional<FrameAutograd::HooksScope> scope;
    if (again()) scope.emplace(autograd(), of_outer);
    save(s, world.make(kBytes));
  });
  Saves outer = run([&](Saves& s) {
    save(s, world.make(kBytes));
    if (!again()) return save(s, world.make(kBytes));
    of_outer = autograd().hooks();
    inner[0]->unpack();
    ADD_FAILURE() << "the outer run goes on";
  });
  script.backward([&] {
    EXPECT_EQ(error_of(outer, 0), "");
    EXPECT_EQ(error_of(outer, 1), "");
  });
  of_outer = {};
  EXPECT_EQ(recomputes(), 2);
  EXPECT_EQ(checkpointer.statistics().stopped_early, 1);
}

TEST_F(FrameTest, EachRecomputeIsInTheLogWithItsSegmentsNumber) {
  std::vector<Decision> log;
  CheckpointContext context;
  context.run = std::make_shared<CheckpointRun>(
      7, [&](const Decision& decision) { log.push_back(decision); });
  Saves first;
  Saves second;
  {
    const CheckpointContextGuard<FrameAutograd> guard(autograd(), context);
    first = run_saving(1);
    second = run_saving(2);
  }
  script.backward([&] {
    second[1]->unpack();
    second[0]->unpack();
    first[0]->unpack();
  });
  EXPECT_EQ(log, (std::vector<Decision>{{DecisionKind::kRecompute, 7, 1, 0},
                                        {DecisionKind::kRecompute, 7, 0, 0}}));
}

}  // namespace
}  // namespace ferry::test
