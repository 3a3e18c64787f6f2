// What a frame holds, and for how long.
#include <utility>

#include "shared/checkpoint/frame.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {
namespace {

using enum SavedChoice;

// The bytes go with the function's own tensor, and so does the count of its versions.
TEST_F(FrameTest, OfATensorThatIsRecomputedForwardLeavesNothing) {
  sim::Version version;
  const Saves saves = run([&](Saves& s) {
    const Tensor tensor = world.make(kBytes);
    version = tensor->version;
    save(s, tensor);
  });
  EXPECT_EQ(live(), 0);
  EXPECT_TRUE(world.device().unique(version));
}

TEST_F(FrameTest, WhatIsRecomputedGoesAsItIsUnpackedOrDropped) {
  Saves saves = run_saving(3);
  script.backward([&] {
    saves[2]->unpack();
    EXPECT_EQ(live(), 2);
    saves[1].reset();
    EXPECT_EQ(live(), 1);
    saves[0]->unpack();
    EXPECT_EQ(live(), 0);
  });
  EXPECT_EQ(recomputes(), 1);
}

// Autograd drops saved tensors before backward: of a branch whose gradient nobody asks for.
TEST_F(FrameTest, WhatWasDroppedIsNeitherMadeAgainNorCompared) {
  Saves saves = run([&](Saves& s) {
    save(s, world.make(again() ? kBytes : 2 * kBytes));
    save(s, world.make(kBytes));
  });
  saves[0].reset();
  script.backward([&] {
    EXPECT_EQ(error_of(saves, 1), "");
    EXPECT_EQ(live(), 0);
  });
}

TEST_F(FrameTest, WhatIsKeptIsForwardsOwnAndIsNotMadeAgain) {
  std::uint64_t contents = 0;
  Saves saves = run(
      [&](Saves& s) {
        const Tensor first = world.make(kBytes);
        if (!again()) contents = world.contents(first);
        save(s, first);
        save(s, world.make(kBytes));
        save(s, world.make(kBytes));
      },
      choosing({kKeep}));
  ASSERT_NE(saves[0], nullptr);
  EXPECT_EQ(live(), 1);
  script.backward([&] {
    saves[1]->unpack();
    EXPECT_EQ(live(), 2);  // what is kept, and the third
    EXPECT_EQ(world.contents(saves[0]->unpack()), contents);
  });
  EXPECT_EQ(checkpointer.statistics().kept, 1);
  EXPECT_EQ(checkpointer.statistics().saved, 2);
}

TEST_F(FrameTest, WhatIsKeptIsRefusedOnceItWasWritten) {
  Tensor tensor;
  Saves saves = run([&](Saves& s) { save(s, tensor = world.make(kBytes)); }, choosing({kKeep}));
  ASSERT_NE(saves[0], nullptr);
  world.write(tensor);
  EXPECT_EQ(error_of(saves, 0),
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: it is at version 1; expected version 0 instead");
  tensor.reset();
}

// A backward within the function gets back what the same run saved.
TEST_F(FrameTest, WhatARecomputeSavesServesIt) {
  int served = 0;
  Saves saves = run([&](Saves& s) {
    const Tensor first = world.make(kBytes);
    save(s, first);
    if (again()) {
      ASSERT_NE(s[0], nullptr);
      EXPECT_EQ(world.contents(s[0]->unpack()), world.contents(first));
      world.write(first);
      EXPECT_NE(error_of(s, 0), "");
      ++served;
    }
    save(s, world.make(kBytes));
  });
  script.backward([&] { saves[1]->unpack(); });
  EXPECT_EQ(served, 1);
}

// Counts what it holds.
struct Around final : Hooks<sim::Tensor> {
  struct Held final : Saved<sim::Tensor> {
    Held(Around& pair, sim::Tensor what) : owner(pair), tensor(std::move(what)) { ++owner.held; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() override { --owner.held; }
    sim::Tensor unpack() override {
      ++owner.unpacked;
      return tensor;
    }
    Around& owner;
    sim::Tensor tensor;
  };
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    return std::make_unique<Held>(*this, tensor);
  }
  int held = 0;
  int unpacked = 0;
};

TEST_F(FrameTest, WhatIsPassedOnIsTheHooksAroundIt) {
  const auto around = std::make_shared<Around>();
  Saves saves;
  {
    const HooksGuard<FrameAutograd> guard(autograd(), around);
    saves = run_saving(2, choosing({kOffload}));
  }
  EXPECT_EQ(around->held, 1);
  EXPECT_EQ(live(), 1);
  script.backward([&] {
    saves[0]->unpack();
    EXPECT_EQ(around->unpacked, 1);
    EXPECT_EQ(recomputes(), 0);
    saves[1]->unpack();
    EXPECT_EQ(recomputes(), 1);
    EXPECT_EQ(live(), 1);  // the recompute made the second one alone
  });
  saves.clear();
  EXPECT_EQ(around->held, 0);
}

// To nobody: it stays where it is, as what is kept does.
TEST_F(FrameTest, WhatIsPassedOnWithoutHooksAroundItIsKept) {
  Saves saves = run_saving(1, choosing({kOffload}));
  ASSERT_NE(saves[0], nullptr);
  EXPECT_EQ(live(), 1);
  EXPECT_EQ(checkpointer.statistics().kept, 1);
  EXPECT_EQ(checkpointer.statistics().passed_on, 0);
  script.backward([&] { EXPECT_EQ(error_of(saves, 0), ""); });
  EXPECT_EQ(recomputes(), 0);
}

}  // namespace
}  // namespace ferry::test
