// The way back: values and views, unpacking again, in-place writes, prefetch, held targets.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

const std::vector<std::string> kNoHazards;

// Every behaviour below holds wherever a reload lands.
class OffloaderUnpack : public ::testing::TestWithParam<ReloadPool> {
 protected:
  CoreOptions options() const {
    CoreOptions options = test::eager_options();
    options.reload_pool = GetParam();
    return options;
  }
  // `count` different tensors packed and gone from the device; their contents in `contents`.
  std::vector<test::SaveRef> forward(test::Rig& rig, int count,
                                     std::int64_t bytes = 64 * test::kKiB) {
    std::vector<test::SaveRef> saves;
    for (int i = 0; i < count; ++i) {
      Tensor x = rig.world.make(bytes);
      contents.push_back(rig.world.contents(x));
      saves.push_back(rig.pack_only(std::move(x)));
    }
    rig.evict();
    return saves;
  }
  std::vector<std::uint64_t> contents;
};

TEST_P(OffloaderUnpack, EverySaveComesBack) {
  test::Rig rig(options());
  std::vector<test::SaveRef> saves = forward(rig, 6);
  EXPECT_EQ(rig.backward(saves), contents);
  saves.clear();
  rig.expect_clean();
}

// Views of one storage keep their offsets, strides and broadcasts.
TEST_P(OffloaderUnpack, EveryViewComesBackAsItWas) {
  const std::vector<Layout> layouts = {
      {DType::kF32, {2, 8, 16, 4}, {512, 64, 4, 1}, 0},
      {DType::kF32, {2, 16, 8, 4}, {512, 4, 64, 1}, 0},   // transposed
      {DType::kF32, {32, 32}, {32, 1}, 0},                // the same bytes, reshaped
      {DType::kF32, {2, 16, 8, 4}, {512, 1, 64, 16}, 0},  // channels last
      {DType::kF32, {100}, {1}, 8},                       // contiguous, with an offset
      {DType::kF32, {64, 8, 4}, {0, 4, 1}, 16},           // expanded
      {DType::kF32, {16}, {63}, 3},                       // strided
  };
  test::Rig rig(options());
  Tensor base = rig.world.make(contiguous_layout(DType::kF32, {1024}));
  std::vector<test::SaveRef> saves;
  std::vector<std::uint64_t> expected;
  for (const Layout& layout : layouts) {
    const Tensor view = rig.world.view(base, layout);
    expected.push_back(rig.world.contents(view));
    saves.push_back(rig.pack(view));
  }
  base.reset();
  rig.evict();
  ASSERT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.world.copies(Step::kOffload), 1);
  rig.script.backward([&] {
    rig.script.node([&] {
      for (std::size_t i = 0; i < saves.size(); ++i) {
        EXPECT_EQ(saves[i]->unpack()->layout.window->layout, layouts[i]);
      }
    });
  });
  EXPECT_EQ(rig.backward(saves), expected);
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
}

// Within a node, in a second backward, and outside one.
TEST_P(OffloaderUnpack, UnpackingAgainGivesTheSameValues) {
  test::Rig rig(options());
  std::vector<test::SaveRef> saves = forward(rig, 2);
  rig.script.backward([&] {
    rig.script.node([&] {
      const Tensor first = saves[0]->unpack();
      const Tensor second = saves[0]->unpack();
      EXPECT_EQ(rig.world.contents(first), contents[0]);
      EXPECT_EQ(rig.world.contents(second), contents[0]);
    });
  });
  EXPECT_EQ(rig.backward(saves), contents);
  EXPECT_EQ(rig.backward(saves), contents);
  EXPECT_EQ(rig.world.contents(saves[1]->unpack()), contents[1]);
  saves.clear();
  rig.expect_clean();
}

TEST_P(OffloaderUnpack, ASourceThatStillLivesIsHandedOut) {
  test::Rig rig(options());
  const Tensor x = rig.world.make(4 * test::kKiB);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(x));
  rig.evict();
  rig.script.backward(
      [&] { rig.script.node([&] { EXPECT_EQ(saves[0]->unpack()->storage, x->storage); }); });
  EXPECT_EQ(rig.world.copies(Step::kReload), 0);
  EXPECT_EQ(rig.offloader.statistics().stash_hits, 1);
}

// Autograd's own check, which hooks normally lose; also where Ferry kept the tensor.
TEST_P(OffloaderUnpack, ATensorWrittenAfterItsSaveRaises) {
  for (const std::int64_t bytes : {64 * test::kKiB, test::Rig::kTiny}) {
    test::Rig rig(options());
    const Tensor x = rig.world.make(bytes);
    const test::SaveRef save = rig.pack(x);
    rig.world.write(x);
    EXPECT_THROW(save->unpack(), ModifiedInPlace);
  }
}

TEST_P(OffloaderUnpack, WritingATensorThatIsNeverUnpackedIsLegal) {
  test::Rig rig(options());
  Tensor x = rig.world.make(64 * test::kKiB);
  test::SaveRef save = rig.pack(x);
  rig.world.write(x);
  x.reset();
  save.reset();
  rig.evict();
  rig.expect_clean();
}

TEST_P(OffloaderUnpack, WritingAnUnpackedTensorIsAWriteOfTheSavedOne) {
  test::Rig rig(options());
  const std::vector<test::SaveRef> saves = forward(rig, 1);
  rig.script.backward([&] { rig.script.node([&] { rig.world.write(saves[0]->unpack()); }); });
  EXPECT_THROW(saves[0]->unpack(), ModifiedInPlace);
}

// What backward writes is the tensor itself, not a copy of it.
TEST_P(OffloaderUnpack, AKeptTensorIsTheTensorItself) {
  test::Rig rig(options());
  const Tensor buffer = rig.world.make(64 * test::kKiB);
  rig.offloader.exempt(buffer);
  const test::SaveRef save = rig.pack(buffer);
  rig.world.write(save->unpack());
  const std::uint64_t written = rig.world.contents(buffer);
  EXPECT_EQ(rig.world.contents(rig.world.view(buffer, buffer->layout.window->layout)), written);
  EXPECT_EQ(buffer->version->value, 1u);
}

// R2a, R2b: a view that escapes its node is read later, and its block is not another's before.
TEST_P(OffloaderUnpack, AViewThatEscapesItsNodeIsNotOverwritten) {
  test::Rig rig(options());
  const std::vector<test::SaveRef> saves = forward(rig, 4);
  rig.script.backward([&] {
    Tensor escaped;
    rig.script.node([&] { escaped = saves[3]->unpack(); });
    rig.consume(saves[2]);
    rig.consume(saves[1]);
    rig.world.use(escaped);
    EXPECT_EQ(rig.world.contents(escaped), contents[3]);
    escaped.reset();
    rig.consume(saves[0]);  // may have its block
  });
  const Tensor next = rig.world.make(64 * test::kKiB);
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
}

// `a * a` with a view that escapes: the count at the node's end is no baseline's.
TEST_P(OffloaderUnpack, AViewThatEscapesBesideASecondUnpackIsNotOverwritten) {
  CoreOptions holding = options();
  holding.hold_bytes = test::kMiB;
  test::Rig rig(holding);
  Tensor a = rig.world.make(64 * test::kKiB);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(a));
  saves.push_back(rig.pack_only(std::move(a)));
  std::vector<test::SaveRef> others = forward(rig, 3);
  Tensor escaped;
  rig.script.backward([&] {
    rig.script.node([&] {
      const Tensor first = saves[0]->unpack();
      escaped = saves[1]->unpack();
    });
    for (const test::SaveRef& other : others) rig.consume(other);
    rig.world.use(escaped);
  });
  escaped.reset();
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
  saves.clear();
  others.clear();
  rig.expect_clean();
}

// A target that is held for a later save while the task runs; afterwards another reload may take
// its block.
void expect_held_target_survives(CoreOptions options, const auto& run) {
  options.hold_bytes = test::kMiB;
  test::Rig rig(options);
  Tensor x = rig.world.make(64 * test::kKiB);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(x));
  saves.push_back(rig.pack_only(std::move(x)));
  test::SaveRef other = rig.pack_only(rig.world.make(64 * test::kKiB));
  rig.evict();
  rig.script.backward([&] { run(rig, saves[1]); });
  saves.clear();
  rig.script.backward([&] { rig.consume(other); });
  other.reset();
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
  rig.expect_clean();
}

// What escaped a node may be read, and dropped, before the target goes.
TEST_P(OffloaderUnpack, AnEscapeFromAHeldTargetIsRememberedUntilTheTargetGoes) {
  expect_held_target_survives(options(), [](test::Rig& rig, const test::SaveRef& save) {
    Tensor escaped;
    rig.script.node([&] { escaped = save->unpack(); });
    rig.script.node([&] {
      rig.world.use(escaped);
      escaped.reset();
    });
  });
}

// A use that no node's end covers.
TEST_P(OffloaderUnpack, AHeldTargetUnpackedOutsideANodeIsNotOverwritten) {
  expect_held_target_survives(options(), [](test::Rig& rig, const test::SaveRef& save) {
    rig.consume(save);
    rig.world.use(save->unpack());
  });
}

// Compute is on the stream that computes now, forward and backward.
TEST_P(OffloaderUnpack, ComputingOnAnotherStreamIsOrdered) {
  test::Rig rig(options());
  rig.world.machine().set_current_stream(rig.world.stream(1));
  std::vector<test::SaveRef> saves = forward(rig, 4, test::kMiB);
  EXPECT_EQ(rig.backward(saves), contents);
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
}

TEST_P(OffloaderUnpack, ConsumersOnTwoStreamsAreOrdered) {
  CoreOptions holding = options();
  holding.hold_bytes = test::kMiB;
  test::Rig rig(holding);
  sim::Machine& machine = rig.world.machine();
  Tensor x = rig.world.make(64 * test::kKiB);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(x));
  saves.push_back(rig.pack_only(std::move(x)));
  rig.evict();
  rig.script.backward([&] {
    rig.consume(saves[1]);
    machine.set_current_stream(rig.world.stream(1));
    rig.consume(saves[0]);
    machine.set_current_stream(rig.world.stream(0));
  });
  EXPECT_EQ(rig.world.copies(Step::kReload), 1);
  saves.clear();
  const Tensor next = rig.world.make(64 * test::kKiB);
  const test::SaveRef again = rig.pack(next);
  EXPECT_EQ(rig.world.hazards(), kNoHazards);
}

INSTANTIATE_TEST_SUITE_P(Pools, OffloaderUnpack, test::kBothPools, test::pool_name);

}  // namespace
}  // namespace ferry
