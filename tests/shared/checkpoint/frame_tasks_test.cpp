// Whom a recompute serves: a task, a group of backwards, a thread; outside of them, nobody else.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/checkpoint/frame.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {
namespace {

const std::string kTwice =
    "ferry::checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If "
    "you are unpacking saved tensors in a backward of your own, make sure to do so only once.";
const std::string kTwiceInGroup =
    "ferry::checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
    "Performing two backward calls that overlap (i.e. require the same saved activation in order "
    "to compute gradients) is not allowed while under the ferry::GraphExecGroup context. If you "
    "are unpacking saved tensors in a backward of your own, make sure to do so only once.";

class FrameGroupTest : public FrameTest {
 protected:
  // A backward of the group that unpacks these.
  void backward(const std::shared_ptr<ExecGroup>& group, Saves& saves,
                const std::vector<std::size_t>& ordinals) {
    const ExecGroupGuard<FrameAutograd> guard(autograd(), group);
    script.backward([&] {
      for (const std::size_t ordinal : ordinals) saves[ordinal]->unpack();
    });
  }
};

TEST_F(FrameTest, ATaskGetsEachTensorOnce) {
  Saves saves = run_saving(2);
  script.backward([&] {
    EXPECT_EQ(error_of(saves, 0), "");
    EXPECT_EQ(error_of(saves, 0), kTwice);
    EXPECT_EQ(error_of(saves, 1), "");
  });
  EXPECT_EQ(recomputes(), 1);
}

TEST_F(FrameTest, OutsideABackwardEachUnpackRecomputes) {
  Saves saves = run_saving(2);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(error_of(saves, 0), "");
    EXPECT_EQ(recomputes(), i);
    EXPECT_EQ(live(), 0);
  }
  EXPECT_EQ(thread.task_ends, 0);
}

// Two threads of the engine may meet in a frame: neither waits for the other.
TEST_F(FrameTest, EachThreadOfATaskRecomputesForItself) {
  Saves saves = run_saving(2);
  script.backward([&] {
    for (const std::uint64_t number : {1, 2}) {
      thread.id = ThreadId{number};
      EXPECT_EQ(error_of(saves, 0), "");
    }
    EXPECT_EQ(recomputes(), 2);
    for (const std::uint64_t number : {1, 2}) {
      thread.id = ThreadId{number};
      EXPECT_EQ(error_of(saves, 1), "");
    }
    EXPECT_EQ(recomputes(), 2);
    EXPECT_EQ(error_of(saves, 0), kTwice);
  });
}

TEST_F(FrameGroupTest, AGroupsBackwardsShareARecompute) {
  Saves saves = run_saving(3);
  auto group = std::make_shared<ExecGroup>();
  backward(group, saves, {0});
  EXPECT_EQ(live(), 2);
  backward(group, saves, {2});
  EXPECT_EQ(recomputes(), 1);
  EXPECT_EQ(live(), 1);
  group.reset();
  EXPECT_EQ(live(), 0);  // what none of them asked for
}

TEST_F(FrameGroupTest, AGroupsBackwardsMustNotOverlap) {
  Saves saves = run_saving(2);
  const auto group = std::make_shared<ExecGroup>();
  backward(group, saves, {0});
  const ExecGroupGuard<FrameAutograd> guard(autograd(), group);
  script.backward([&] { EXPECT_EQ(error_of(saves, 0), kTwiceInGroup); });
  EXPECT_EQ(recomputes(), 1);
}

TEST_F(FrameGroupTest, EachGroupRecomputesForItself) {
  Saves saves = run_saving(2);
  const auto one = std::make_shared<ExecGroup>();
  const auto two = std::make_shared<ExecGroup>();
  backward(one, saves, {0});
  backward(two, saves, {0, 1});
  backward(one, saves, {1});
  EXPECT_EQ(recomputes(), 2);
}

// Forward goes on after an unpack inside it, and saves what the recompute did not know of. What the
// task asked for before does not come again, and the rest of the old recompute goes.
TEST_F(FrameTest, ARecomputeThatForwardOutgrewIsReplaced) {
  Saves saves;
  script.backward([&] {
    saves = run([&](Saves& s) {
      save(s, world.make(kBytes));
      save(s, world.make(kBytes));
      if (!again()) {
        EXPECT_EQ(error_of(s, 0), "");
      }
      save(s, world.make(kBytes));
      save(s, world.make(kBytes));
    });
    EXPECT_EQ(live(), 1);
    EXPECT_EQ(recomputes(), 1);
    EXPECT_EQ(error_of(saves, 2), "");
    EXPECT_EQ(recomputes(), 2);
    EXPECT_EQ(live(), 2);  // the second and the last
    EXPECT_EQ(error_of(saves, 0), kTwice);
    EXPECT_EQ(error_of(saves, 1), "");
    EXPECT_EQ(live(), 1);
    EXPECT_EQ(error_of(saves, 3), "");
    EXPECT_EQ(recomputes(), 2);
  });
  EXPECT_EQ(thread.task_ends, 1);
}

// The same where forward had saved nothing more by then.
TEST_F(FrameTest, TheFirstTensorAfterARecomputeIsNotPartOfIt) {
  Saves saves;
  script.backward([&] {
    saves = run([&](Saves& s) {
      save(s, world.make(kBytes));
      if (!again()) {
        EXPECT_EQ(error_of(s, 0), "");
      }
      save(s, world.make(kBytes));
    });
    EXPECT_EQ(error_of(saves, 1), "");
    EXPECT_EQ(recomputes(), 2);
    EXPECT_EQ(error_of(saves, 0), kTwice);
  });
}

}  // namespace
}  // namespace ferry::test
