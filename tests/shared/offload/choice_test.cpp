#include "shared/offload/choice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::SimDevice;
using sim::Tensor;
using test::kKiB;
using test::kMiB;

class Chooser {
 public:
  explicit Chooser(CoreOptions options = {}, const Rules& rules = {})
      : context(world.device(), std::move(options), rules) {}

  // Of a view of so many bytes from `begin` on.
  Extent travelling(const Tensor& base, std::int64_t begin, std::int64_t bytes) {
    const Tensor view = world.view(base, {DType::kU8, {bytes}, {1}, begin});
    return choice.travelling(view, base->storage);
  }
  bool wants(const Tensor& x, std::uint64_t pack = 0) {
    Bin<SimDevice> bin;
    return choice.wants(x, x->storage, choice.travelling(x, x->storage), pack, bin);
  }

  test::World world;
  Context<SimDevice> context;
  Tracker<SimDevice> tracker;
  Choice<SimDevice> choice{context, tracker};
};

TEST(Choice, OfALargeStorageOnlyWhatASmallViewCoversTravels) {
  Chooser chooser;
  const Tensor small = chooser.world.make(kMiB - 1), large = chooser.world.make(kMiB);
  EXPECT_EQ(chooser.travelling(small, 0, kKiB), (Extent{0, kMiB - 1}));
  EXPECT_EQ(chooser.travelling(large, 0, kKiB), (Extent{0, kKiB})) << "1 MiB is large";
  EXPECT_EQ(chooser.travelling(large, 1000, kKiB), (Extent{512, 1000 + kKiB})) << "aligned";
}

TEST(Choice, AViewOfUpToHalfOfTheStorageIsSmall) {
  Chooser chooser;
  const Tensor large = chooser.world.make(kMiB);
  for (const std::int64_t bytes : {kMiB / 4, kMiB / 2 - kKiB, kMiB / 2}) {
    EXPECT_EQ(chooser.travelling(large, 0, bytes), (Extent{0, bytes}));
  }
  EXPECT_EQ(chooser.travelling(large, 0, kMiB / 2 + 1), (Extent{0, kMiB}));
  EXPECT_EQ(chooser.travelling(large, 1, kMiB / 2), (Extent{0, kMiB})) << "with what aligns it";
  Chooser mutant({}, Rules::without(Rule::kCopyPart));
  EXPECT_EQ(mutant.travelling(mutant.world.make(kMiB), 0, kKiB), (Extent{0, kMiB}));
}

TEST(Choice, PastTheEndOfThePlanTensorsAreKept) {
  CoreOptions options;
  options.offload = {false, true, true};
  options.offload.resize(2);  // what was said of the third is forgotten
  Chooser chooser(std::move(options));
  const Tensor x = chooser.world.make(kKiB);
  EXPECT_FALSE(chooser.wants(x, 0));
  EXPECT_TRUE(chooser.wants(x, 1));
  EXPECT_FALSE(chooser.wants(x, 2));
  EXPECT_FALSE(chooser.wants(x, 100));
}

TEST(Choice, WhatFerryKeepsAliveIsNotWanted) {
  const auto wants = [](const Rules& rules) {
    Chooser chooser({}, rules);
    const Tensor x = chooser.world.make(kKiB), other = chooser.world.make(kKiB);
    chooser.tracker.keep(x->storage->identity);
    EXPECT_TRUE(chooser.wants(other));
    return chooser.wants(x);
  };
  EXPECT_FALSE(wants({}));
  EXPECT_TRUE(wants(Rules::without(Rule::kKeepKept)));
}

TEST(Choice, SavesOfTheSameBytesHaveEqualKeys) {
  Chooser chooser;
  const Tensor x = chooser.world.make(kKiB);
  const Tensor view = chooser.world.view(x, {DType::kU8, {16}, {1}, 0});
  const Tensor data = sim::make_tensor(x->storage, x->layout, chooser.world.make(16)->version);
  const ParcelKey key = chooser.choice.key(x, x->storage);
  EXPECT_EQ(chooser.choice.key(view, view->storage), key);
  EXPECT_NE(chooser.choice.key(data, data->storage), key) << "x.data counts its own writes";
  chooser.world.write(x);
  EXPECT_NE(chooser.choice.key(x, x->storage), key);
}

// A storage that died may leave its address to the next one.
TEST(Choice, AKeyIsNotAnAddress) {
  const auto mistaken = [](const Rules& rules) {
    Chooser chooser({}, rules);
    Tensor x = chooser.world.make(kKiB);
    const std::uint64_t address = x->storage->address;
    const std::uint64_t storage = chooser.choice.key(x, x->storage).storage;
    x.reset();
    const Tensor next = chooser.world.make(kKiB);
    EXPECT_EQ(next->storage->address, address);
    return chooser.choice.key(next, next->storage).storage == storage;
  };
  EXPECT_FALSE(mistaken({}));
  EXPECT_TRUE(mistaken(Rules::without(Rule::kIdentity)));
}

}  // namespace
}  // namespace ferry
