// The offloader over whole steps: what is left of them, in whatever order graphs come and go.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

// Ferry's defaults, with a window that a few tensors fill.
class OffloaderLife : public ::testing::TestWithParam<ReloadPool> {
 protected:
  CoreOptions options() const {
    CoreOptions options;
    options.reload_pool = GetParam();
    options.window_bytes = 128 * test::kKiB;
    options.prefetch_bytes = 256 * test::kKiB;
    options.hold_bytes = 256 * test::kKiB;
    return options;
  }
  struct Graph {
    std::vector<test::SaveRef> saves;
    std::vector<std::uint64_t> contents;
  };
  Graph forward(test::Rig& rig, int count = 8) {
    rig.offloader.begin_run();
    Graph graph;
    for (int i = 0; i < count; ++i) {
      Tensor x = rig.world.make(64 * test::kKiB);
      graph.contents.push_back(rig.world.contents(x));
      graph.saves.push_back(rig.pack_only(std::move(x)));
    }
    return graph;
  }
};

TEST_P(OffloaderLife, AGraphThatIsDroppedWithoutBackwardFreesEverything) {
  test::Rig rig(options());
  Graph graph = forward(rig);
  graph.saves.clear();
  rig.expect_clean();
  EXPECT_EQ(rig.offloader.statistics().vain_count, 8);
  EXPECT_EQ(rig.offloader.statistics().vain_bytes, 8 * 64 * test::kKiB);
}

// Of two branches one never runs backward, step after step.
TEST_P(OffloaderLife, ABranchThatNeverRunsBackwardLeavesNothing) {
  test::Rig rig(options());
  for (int step = 0; step < 5; ++step) {
    Graph used = forward(rig);
    Graph unused = forward(rig);
    EXPECT_EQ(rig.backward(used.saves), used.contents);
    used.saves.clear();
    unused.saves.clear();
    rig.expect_clean();
  }
}

// Two forwards, then the backward of the first, then that of the second.
TEST_P(OffloaderLife, TwoForwardsBeforeTheirBackwardsDoNotMix) {
  test::Rig rig(options());
  Graph first = forward(rig);
  Graph second = forward(rig);
  EXPECT_EQ(rig.backward(first.saves), first.contents);
  EXPECT_EQ(rig.backward(second.saves), second.contents);
  first.saves.clear();
  second.saves.clear();
  rig.expect_clean();
}

// The reloads of the second backward do not pile up, either.
TEST_P(OffloaderLife, ASecondBackwardHoldsNoMoreThanTheFirst) {
  test::Rig rig(options());
  const Graph first = forward(rig, 24);
  const Graph second = forward(rig, 24);
  rig.backward(first.saves);
  const std::int64_t peak = rig.offloader.statistics().backward_stash_peak_bytes;
  rig.backward(second.saves);
  EXPECT_EQ(rig.offloader.statistics().backward_stash_peak_bytes, peak);
  EXPECT_LE(peak, (256 + 3 * 64) * test::kKiB);
}

// Retain_graph, and again.
TEST_P(OffloaderLife, RetainedGraphsRunAgain) {
  test::Rig rig(options());
  Graph graph = forward(rig);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.backward(graph.saves), graph.contents);
  EXPECT_EQ(rig.offloader.statistics().backward_stash_bytes, 0) << "between backwards";
  graph.saves.clear();
  rig.expect_clean();
}

// A reentrant checkpoint packs, and runs a backward, within a node.
TEST_P(OffloaderLife, ABackwardWithinABackwardMayPack) {
  test::Rig rig(options());
  Graph outer = forward(rig, 4);
  rig.script.backward([&] {
    for (std::size_t i = 4; i-- > 0;) {
      rig.script.node([&] {
        const Tensor input = outer.saves[i]->unpack();
        Graph inner = forward(rig, 4);
        EXPECT_EQ(rig.backward(inner.saves), inner.contents);
        inner.saves.clear();
        EXPECT_EQ(rig.world.contents(input), outer.contents[i]);
        rig.world.use(input);
      });
      outer.saves[i].reset();
    }
  });
  rig.expect_clean();
}

// The nested task unpacks saves of the outer graph.
TEST_P(OffloaderLife, ANestedTaskMayUnpackTheOuterTasksSaves) {
  test::Rig rig(options());
  Graph graph = forward(rig, 4);
  rig.script.backward([&] {
    rig.script.node([&] {
      const Tensor mine = graph.saves[3]->unpack();
      EXPECT_EQ(rig.backward(graph.saves), graph.contents);
      EXPECT_EQ(rig.world.contents(mine), graph.contents[3]);
    });
    rig.consume(graph.saves[3]);
  });
  graph.saves.clear();
  rig.expect_clean();
}

// A save refers to the tensor's bytes, not to the tensor with its graph.
TEST_P(OffloaderLife, AKeptTensorIsDetached) {
  test::Rig rig(options());
  const Tensor x = rig.world.make(test::Rig::kTiny);
  const test::SaveRef save = rig.pack(x);
  EXPECT_EQ(x.use_count(), 1);
  EXPECT_NE(save->unpack(), x);
}

// Events, storages and host bytes of n steps are those of one.
TEST_P(OffloaderLife, StepsDoNotAccumulate) {
  test::Rig rig(options());
  std::optional<std::int64_t> pinned;
  for (int step = 0; step < 6; ++step) {
    Graph graph = forward(rig);
    EXPECT_EQ(rig.backward(graph.saves), graph.contents);
    graph.saves.clear();
    rig.expect_clean();
    rig.world.machine().drain();
    const std::int64_t now = rig.world.machine().host_pool().stats().pinned_bytes.peak;
    EXPECT_EQ(now, pinned.value_or(now));
    pinned = now;
  }
}

TEST_P(OffloaderLife, AnOffloaderIsEmptyWhenNothingIsLeftAndNotBefore) {
  test::Rig rig(options());
  EXPECT_TRUE(rig.offloader.empty());
  Graph graph = forward(rig, 2);
  EXPECT_FALSE(rig.offloader.empty());
  graph.saves.pop_back();
  EXPECT_FALSE(rig.offloader.empty());
  graph.saves.pop_back();
  EXPECT_TRUE(rig.offloader.empty());
}

TEST_P(OffloaderLife, SavesOutliveTheOffloader) {
  test::World world;
  test::Script script;
  std::optional<Offloader<sim::SimDevice, test::ScriptAutograd>> offloader(
      std::in_place, world.device(), test::ScriptAutograd(script), options());
  Tensor x = world.make(64 * test::kKiB);
  const std::uint64_t contents = world.contents(x);
  test::SaveRef save = offloader->hooks()->pack(x);
  x.reset();
  offloader.reset();
  script.backward(
      [&] { script.node([&] { EXPECT_EQ(world.contents(save->unpack()), contents); }); });
  save.reset();
  world.expect_clean();
}

// A graph may die in the middle of its own backward, node by node.
TEST_P(OffloaderLife, SavesMayDieAsTheirNodesEnd) {
  test::Rig rig(options());
  Graph graph = forward(rig);
  rig.script.backward([&] {
    for (std::size_t i = graph.saves.size(); i-- > 0;) {
      EXPECT_EQ(rig.consume(graph.saves[i]), graph.contents[i]);
      graph.saves[i].reset();
    }
  });
  rig.expect_clean();
}

TEST_P(OffloaderLife, ASaveMayDieWhileItsTensorIsInUse) {
  test::Rig rig(options());
  Graph graph = forward(rig);
  rig.script.backward([&] {
    for (std::size_t i = graph.saves.size(); i-- > 0;) {
      rig.script.node([&] {
        const Tensor x = graph.saves[i]->unpack();
        graph.saves[i].reset();
        rig.world.use(x);
        EXPECT_EQ(rig.world.contents(x), graph.contents[i]);
      });
    }
  });
  rig.expect_clean();
}

// User code throws in a node; the error is its own, and the next step works.
TEST_P(OffloaderLife, ANodeThatThrowsLeavesNothing) {
  test::Rig rig(options());
  for (int step = 0; step < 3; ++step) {
    Graph graph = forward(rig);
    const auto failing = [&] {
      rig.script.backward([&] {
        rig.consume(graph.saves[7]);
        rig.script.node([&] {
          rig.world.use(graph.saves[6]->unpack());
          throw std::runtime_error("in user code");
        });
      });
    };
    EXPECT_THROW(failing(), std::runtime_error);
    EXPECT_EQ(rig.offloader.statistics().backward_stash_bytes, 0) << "at the end of the task";
    if (step == 1) {
      EXPECT_EQ(rig.backward(graph.saves), graph.contents);
    }
    graph.saves.clear();
    rig.expect_clean();
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, OffloaderLife, test::kBothPools, test::pool_name);

}  // namespace
}  // namespace ferry
