#include "shared/offload/offload_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "shared/adaptors/observed.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::kKiB;
using test::SaveRef;

constexpr std::int64_t kTiny = 16;  // never sent by default

// Counts the tasks whose end the core asks for, or refuses.
class Listening final : public test::ScriptAutograd {
 public:
  struct Told {
    int tasks = 0;
    bool refuses = false;
  };
  Listening(test::Script& script, std::shared_ptr<Told> told)
      : test::ScriptAutograd(script), told_(std::move(told)) {}
  void after_task(std::function<void()> callback) {
    if (told_->refuses) throw std::runtime_error("refused");
    ++told_->tasks;
    test::ScriptAutograd::after_task(std::move(callback));
  }

 private:
  std::shared_ptr<Told> told_;
};

// A device whose mutex tells whether it is held.
class Locking final : public sim::SimDevice {
 public:
  struct Mutex {
    void lock() {
      EXPECT_FALSE(held) << "the core would wait for itself";
      held = true;
    }
    void unlock() { held = false; }
    static inline bool held = false;
  };
  explicit Locking(sim::SimDevice device) : SimDevice(device) {}
};

class OffloadCoreTest : public ::testing::Test {
 protected:
  using Device = Counted<Locking>;
  using Core = OffloadCore<Device, Listening>;

  std::shared_ptr<Core> core(const CoreOptions& options = test::eager_options(),
                             const Rules& rules = {}) {
    return std::make_shared<Core>(Device(Locking(world.device()), calls), Listening(script, told),
                                  options, rules);
  }
  // Whether the core sends the tensor to the host. Its save is dropped at once.
  static bool sends(Core& core, const Tensor& x) {
    const std::int64_t before = core.statistics().offloaded_count;
    const SaveRef save = core.pack(x);
    return core.statistics().offloaded_count > before;
  }
  void evict(Core& core) { core.pack(world.make(kTiny)); }  // all earlier sources
  std::int64_t host_bytes() { return world.machine().host_pool().stats().in_use_bytes.current; }

  test::World world;
  test::Script script;
  std::shared_ptr<CallCount> calls = std::make_shared<CallCount>();
  std::shared_ptr<Listening::Told> told = std::make_shared<Listening::Told>();
};

TEST_F(OffloadCoreTest, TheLeastSizeIsOfTheBytesThatWouldTravel) {
  CoreOptions options = test::eager_options();
  for (const std::int64_t least : {std::int64_t{0}, std::int64_t{1}, 4 * kKiB}) {
    options.min_bytes = least;
    const auto weighing = core(options);
    EXPECT_FALSE(sends(*weighing, world.make(0))) << "no bytes are never sent";
    EXPECT_FALSE(least > 1 && sends(*weighing, world.make(least - 1)));
    EXPECT_TRUE(sends(*weighing, world.make(std::max<std::int64_t>(least, 1))));
    // Of a large storage a small part would travel.
    const Tensor large = world.make(2 * test::kMiB);
    const Tensor part = world.view(large, {DType::kU8, {kKiB}, {1}, 0});
    EXPECT_EQ(sends(*weighing, part), least <= kKiB);
  }
}

TEST_F(OffloadCoreTest, WhatIsExemptIsKeptInEveryView) {
  const Tensor parameter = world.make(kBytes);
  const Tensor view = world.view(parameter, {DType::kU8, {kBytes / 2}, {1}, 0});
  const auto sent = [&](const Rules& rules) {
    const auto sparing = core(test::eager_options(), rules);
    sparing->exempt(parameter);
    return sends(*sparing, view);
  };
  EXPECT_FALSE(sent({}));
  EXPECT_TRUE(sent(Rules::without(Rule::kExempt)));
}

// Two saves of a tensor and one of it in a later version; gives the copies made.
TEST_F(OffloadCoreTest, OneVersionOfAStorageTravelsOnce) {
  const auto copies = [&](const Rules& rules) {
    const auto sharing = core(test::eager_options(), rules);
    const Tensor x = world.make(kBytes);
    const SaveRef first = sharing->pack(x);
    const SaveRef second = sharing->pack(x);
    ++x->version->value;
    const SaveRef written = sharing->pack(x);
    EXPECT_EQ(sharing->statistics().shared + sharing->statistics().offloaded_count, 3);
    return sharing->statistics().offloaded_count;
  };
  EXPECT_EQ(copies({}), 2);
  EXPECT_EQ(copies(Rules::without(Rule::kShare)), 3);
  EXPECT_EQ(copies(Rules::without(Rule::kVersioned)), 1) << "the written one is taken for it";
}

TEST_F(OffloadCoreTest, UnpackingAfterAWriteRaises) {
  const auto unpack = [&](std::int64_t bytes, const Rules& rules) {
    const auto checking = core(test::eager_options(), rules);
    const Tensor x = world.make(bytes);
    const SaveRef save = checking->pack(x);
    world.write(x);
    save->unpack();
  };
  for (const std::int64_t bytes : {kBytes, kTiny}) {  // sent, and kept
    EXPECT_THROW(unpack(bytes, {}), ModifiedInPlace);
    EXPECT_NO_THROW(unpack(bytes, Rules::without(Rule::kCheckVersion)));
  }
}

// Whoever uses it is ordered after what wrote it already.
TEST_F(OffloadCoreTest, ASourceThatLivesIsHandedOutWithoutAStep) {
  const auto handing = core();
  const Tensor x = world.make(kBytes);
  const SaveRef save = handing->pack(x);
  const std::int64_t before = world.machine().operations();
  EXPECT_EQ(save->unpack()->storage, x->storage);
  EXPECT_EQ(world.machine().operations(), before);
}

TEST_F(OffloadCoreTest, WhereSourcesAreNotHandedOutTheyComeBackFromTheHost) {
  const auto reloading = core(test::eager_options(), Rules::without(Rule::kUseSource));
  const Tensor x = world.make(kBytes);
  const SaveRef save = reloading->pack(x);
  EXPECT_NE(save->unpack()->storage, x->storage);
  EXPECT_EQ(calls->of(Step::kReload).calls, 1);
}

TEST_F(OffloadCoreTest, TheLastSaveReturnsTheHostBytesAndTheParcelIsForgotten) {
  const auto returning = core();
  Tensor x = world.make(kBytes);
  SaveRef first = returning->pack(x), second = returning->pack(x);
  x.reset();
  evict(*returning);
  first.reset();
  EXPECT_EQ(host_bytes(), kBytes);
  EXPECT_FALSE(returning->empty());
  second.reset();
  EXPECT_EQ(host_bytes(), 0);
  EXPECT_TRUE(returning->empty());
  EXPECT_EQ(returning->statistics().vain_bytes, kBytes);
  world.expect_clean();
}

TEST_F(OffloadCoreTest, WithoutForgettingAParcelOutlivesItsSavesInTheIndex) {
  const auto remembering = core(test::eager_options(), Rules::without(Rule::kForget));
  SaveRef save = remembering->pack(world.make(kBytes));
  save.reset();
  EXPECT_FALSE(remembering->empty());
}

TEST_F(OffloadCoreTest, ATasksEndIsAskedForOnceAndNothingIsDoneWhereItIsRefused) {
  const auto asking = core();
  SaveRef save = asking->pack(world.make(kBytes));
  evict(*asking);
  told->refuses = true;
  EXPECT_THROW(script.backward([&] { save->unpack(); }), std::runtime_error);
  EXPECT_EQ(calls->of(Step::kReload).calls, 0);
  told->refuses = false;
  script.backward([&] {
    script.node([&] { save->unpack(); });
    script.node([&] { save->unpack(); });
  });
  EXPECT_EQ(told->tasks, 1);
  save.reset();
  EXPECT_TRUE(asking->empty());
}

// It has nothing to bring back ahead of its use, or nothing of the sort is wanted.
TEST_F(OffloadCoreTest, AKeptTensorAsksForATasksEndOnlyWhereSomethingMayComeBack) {
  CoreOptions options = test::eager_options();
  for (const std::int64_t prefetch : {std::int64_t{0}, kUnlimited}) {
    options.prefetch_bytes = prefetch;
    const auto asking = core(options);
    const SaveRef kept = asking->pack(world.make(kTiny));
    const auto asked = [&] {
      told->tasks = 0;
      script.backward([&] { script.node([&] { kept->unpack(); }); });
      return told->tasks;
    };
    EXPECT_EQ(asked(), 0) << "nothing was sent";
    SaveRef sent = asking->pack(world.make(kBytes));
    EXPECT_EQ(asked(), prefetch > 0 ? 1 : 0);
    sent.reset();
    EXPECT_EQ(asked(), 0) << "nothing is there any more";
  }
}

TEST_F(OffloadCoreTest, ItIsNotEmptyWhileATaskIsOpen) {
  const auto open = core();
  SaveRef save = open->pack(world.make(kBytes));
  evict(*open);
  script.backward([&] {
    save->unpack();
    save.reset();
    EXPECT_FALSE(open->empty());
  });
  EXPECT_TRUE(open->empty());
}

// A deleter may be anybody's code, and so is whoever reads the decisions.
class UnderTheLock final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kFree && op.step != Step::kHostReturn) note();
  }
  void note() { ++(Locking::Mutex::held ? under : outside); }
  int under = 0;
  int outside = 0;
};

TEST_F(OffloadCoreTest, NoStorageIsDroppedAndNobodyIsToldUnderTheLock) {
  UnderTheLock frees, tells;
  world.machine().add_consumer(&frees);
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = kUnlimited;
  options.log = [&tells](const Decision&) { tells.note(); };
  const auto locking = core(options);
  std::vector<SaveRef> saves;
  for (int i = 0; i < 3; ++i) saves.push_back(locking->pack(world.make(kBytes)));
  evict(*locking);
  script.backward([&] { script.node([&] { saves[2]->unpack(); }); });
  saves.clear();
  EXPECT_EQ(frees.under, 0);
  EXPECT_EQ(tells.under, 0);
  EXPECT_GE(frees.outside, 3 + 3) << "the sources, and what came back";
  EXPECT_GE(tells.outside, 3 * 4);
}

// Host memory is slow to come, and at its limit a thread waits for copies: others do not wait with
// it. What one of them sent meanwhile is not sent twice.
TEST_F(OffloadCoreTest, RoomOnTheHostIsHadWithoutTheLock) {
  using Device = Logged<Locking>;
  using Core = OffloadCore<Device, Listening>;
  const Tensor x = world.make(kBytes);
  std::shared_ptr<Core> core;
  std::vector<SaveRef> saves;
  bool asked = false;
  const auto log = std::make_shared<CallLog>([&](const DeviceCall& call) {
    if (call.step != Step::kHostAllocate) return;
    EXPECT_FALSE(Locking::Mutex::held);
    if (!std::exchange(asked, true)) saves.push_back(core->pack(x));  // another thread does
  });
  core = std::make_shared<Core>(Device(Locking(world.device()), log), Listening(script, told),
                                test::eager_options(), Rules());
  saves.push_back(core->pack(x));
  EXPECT_TRUE(asked);
  EXPECT_EQ(core->statistics().offloaded_count, 1);
  EXPECT_EQ(core->statistics().shared, 1);
  EXPECT_EQ(host_bytes(), kBytes) << "of the room that nobody needs any more";
  saves.clear();
  EXPECT_EQ(host_bytes(), 0);
  EXPECT_TRUE(core->empty());
}

}  // namespace
}  // namespace ferry
