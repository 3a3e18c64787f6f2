#include "shared/offload/parcel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <type_traits>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::SimDevice;
using sim::Tensor;
using test::kBytes;
using test::kTask;
using test::Parts;
using ParcelRef = Parts::ParcelRef;
using Role = Target<Parts::Device>::Role;

constexpr StreamId kFirst{0}, kSecond{1};

TEST(ParcelTest, AKeyIsOneVersionOfOneStorageUnderOneCounter) {
  constexpr ParcelKey key{.storage = 1, .counter = 2, .version = 3, .address = 4};
  EXPECT_EQ(key, (ParcelKey{1, 2, 3, 4}));
  EXPECT_NE(key, (ParcelKey{9, 2, 3, 4}));
  EXPECT_NE(key, (ParcelKey{1, 9, 3, 4})) << "x.data has a counter of its own";
  EXPECT_NE(key, (ParcelKey{1, 2, 9, 4}));
  EXPECT_NE(key, (ParcelKey{1, 2, 3, 9})) << "it has other memory";
}

// Its host bytes have one owner, who gives them back once.
TEST(ParcelTest, AJourneyIsMadeOnce) {
  EXPECT_FALSE(std::is_copy_constructible_v<Parcel<SimDevice>>);
  EXPECT_FALSE(std::is_copy_assignable_v<Parcel<SimDevice>>);
}

TEST(ParcelTest, ItsSourceMayDieAndIsNotTakenForAnotherAtItsAddress) {
  Parts parts;
  Tensor x = parts.world.make(kBytes);
  const ParcelRef parcel = parts.parcel_of(x);
  const std::uint64_t address = x->storage->address;
  EXPECT_EQ(parcel->source.lock(), x->storage);
  x.reset();
  EXPECT_EQ(parts.live_storages(), 0);
  const Tensor other = parts.world.make(kBytes);
  ASSERT_EQ(other->storage->address, address);
  EXPECT_EQ(parcel->source.lock(), nullptr);
  EXPECT_NE(parcel->key, parts.parcel_of(other)->key);
}

TEST(ParcelTest, TheVersionOutlivesTheTensorAndTellsOfLaterWrites) {
  Parts parts;
  const Tensor base = parts.world.make(kBytes);
  Tensor x = parts.world.view(base, {DType::kU8, {kBytes}, {1}, 0});
  const ParcelRef parcel = parts.parcel_of(x);
  x.reset();
  EXPECT_EQ(parcel->version->value, parcel->version_at_pack);
  parts.world.write(base);  // another view, but the same counter
  EXPECT_NE(parcel->version->value, parcel->version_at_pack);
}

TEST(ParcelTest, PendingAreTheSavesThatTheTaskHasNotUnpacked) {
  constexpr GraphTaskId kOuter{1}, kInner{2};
  Parcel<SimDevice> parcel;
  EXPECT_EQ(parcel.pending(kOuter), 0);
  parcel.saves = 3;
  EXPECT_EQ(parcel.pending(kOuter), 3);
  parcel.count_unpacked(kOuter, 1);
  parcel.count_unpacked(kInner, 1);
  parcel.count_unpacked(kOuter, 1);
  EXPECT_EQ(parcel.pending(kOuter), 1);
  EXPECT_EQ(parcel.pending(kInner), 2);
  EXPECT_EQ(parcel.pending(GraphTaskId{3}), 3);
  parcel.count_unpacked(kInner, -1);
  EXPECT_EQ(parcel.pending(kInner), 3);
  parcel.count_unpacked(GraphTaskId::kNone, 1);
  EXPECT_EQ(parcel.pending(GraphTaskId::kNone), 3) << "what no task unpacks may come again";
}

TEST(ParcelTest, ATargetIsInUseUntilTheNodesOfAllItsStreamsHaveEnded) {
  Target<SimDevice> target;
  EXPECT_FALSE(target.in_use());
  target.readers = {{kFirst, std::nullopt, 1}, {kSecond, std::nullopt, 1}};
  EXPECT_TRUE(target.in_use());
  target.reader(kFirst)->open = 0;
  EXPECT_TRUE(target.in_use());
  target.reader(kSecond)->open = 0;
  EXPECT_FALSE(target.in_use());
}

TEST(ParcelTest, ATargetKnowsTheStreamsThatWereGivenIt) {
  Target<SimDevice> target;
  target.readers.push_back({kSecond, std::nullopt, 2});
  EXPECT_EQ(target.reader(kFirst), nullptr);
  ASSERT_NE(target.reader(kSecond), nullptr);
  EXPECT_EQ(target.reader(kSecond)->open, 2);
}

// Where the bytes are, and who keeps them there.
struct State {
  std::int64_t on_device = 0;  // storages
  bool on_host = false;
  bool kept = false;
  bool target = false;
  bool operator==(const State&) const = default;
};
State state(Parts& parts, const ParcelRef& parcel) {
  return {parts.live_storages(), parts.host_bytes() > 0, parcel->kept != nullptr,
          parcel->target != nullptr};
}

TEST(ParcelTest, OnItsJourneyTheBytesAreAlwaysSomewhere) {
  for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
    CoreOptions options = test::eager_options();
    options.reload_pool = pool;
    options.hold_bytes = kBytes;
    Parts parts(options);
    ParcelRef parcel = parts.send(parts.world.make(kBytes));
    EXPECT_EQ(state(parts, parcel), (State{1, true, true, false})) << "packed: in the window";
    parts.evict();
    EXPECT_EQ(state(parts, parcel), (State{0, true, false, false})) << "evicted: on the host";
    EXPECT_FALSE(parcel->ever_reloaded);
    parts.inbound.begin_task(kTask, 1);
    ++parcel->saves;
    const NodeId node{1};
    Tensor x = parts.hand_out(parcel, kTask, node);
    EXPECT_EQ(state(parts, parcel), (State{1, true, false, true})) << "held for the second save";
    EXPECT_EQ(parcel->target->role, Role::kHeld);
    EXPECT_TRUE(parcel->ever_reloaded);
    x.reset();
    parts.end_node(kTask, node);
    parts.end_task(kTask);
    EXPECT_EQ(state(parts, parcel), (State{0, true, false, false})) << "it may be reloaded again";
    parts.end(parcel);
    EXPECT_EQ(parts.host_bytes(), 0);
    parts.expect_clean();
  }
}

// The host's bytes stay until somebody returns them with the events of the copies.
TEST(ParcelTest, LettingGoOfAParcelLetsGoOfItsStorages) {
  Parts parts;
  ParcelRef parcel = parts.parcel_of(parts.world.make(kBytes));
  parcel->kept = parts.world.make(kBytes)->storage;
  EXPECT_EQ(parts.live_storages(), 1);
  parcel.reset();
  EXPECT_EQ(parts.live_storages(), 0);
}

}  // namespace
}  // namespace ferry
