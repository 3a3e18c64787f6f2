#include "shared/offload/outbound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::dropping;
using test::kBytes;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;
using Text = std::vector<std::string>;

CoreOptions window(std::int64_t packs, std::int64_t bytes = kUnlimited) {
  CoreOptions options = test::eager_options();
  options.window_tensors = packs;
  options.window_bytes = bytes;
  return options;
}

std::vector<ParcelRef> send(Parts& parts, int count) {
  std::vector<ParcelRef> parcels;
  for (int i = 0; i < count; ++i) parcels.push_back(parts.send(parts.world.make(kBytes)));
  return parcels;
}

// Whose sources the window still keeps, the first packed first.
using Kept = std::vector<bool>;
Kept kept(const std::vector<ParcelRef>& parcels) {
  Kept result;
  for (const ParcelRef& parcel : parcels) result.push_back(parcel->kept != nullptr);
  return result;
}

TEST(OutboundTest, TheCopyFollowsTheProducerOnItsOwnStream) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    const ParcelRef first = parts.send(parts.world.make(kBytes));
    parts.compute_on(1);
    const ParcelRef second = parts.send(parts.world.make(kBytes));
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_EQ(hazards(dropping(Step::kOffloadAfterProducer)).size(), 2u);
  EXPECT_EQ(hazards({{}, Mutation{Step::kUser, Bend::kStale}}).size(), 1u)
      << "the second producer's stream";
}

TEST(OutboundTest, TheBytesOfTheExtentTravelAndTheWholeSourceStays) {
  Parts parts;
  const Tensor x = parts.world.make(4 * kBytes);
  const Tensor part = parts.world.view(x, {DType::kU8, {kBytes}, {1}, 2 * kBytes});
  const ParcelRef parcel = parts.send(x, Extent{2 * kBytes, 3 * kBytes});
  EXPECT_EQ(parts.context.statistics.offloaded_bytes, kBytes);
  EXPECT_EQ(parts.context.statistics.forward_stash_bytes, 4 * kBytes);
  const Tensor back = parts.tensor(parcel, parts.bring(parcel));
  EXPECT_EQ(parts.world.contents(back), parts.world.contents(part));
}

TEST(OutboundTest, TheWindowIsBoundedByPacksAndTheOldestGoesFirst) {
  const auto kept_of_three = [](std::uint64_t before, const Mutant& mutant = {}) {
    Parts parts(window(2), mutant);
    const std::vector<ParcelRef> parcels = send(parts, 3);
    parts.evict_before(before);
    return kept(parcels);
  };
  EXPECT_EQ(kept_of_three(1), (Kept{true, true, true}));
  EXPECT_EQ(kept_of_three(2), (Kept{false, true, true}));
  EXPECT_EQ(kept_of_three(3), (Kept{false, false, true}));
  EXPECT_EQ(kept_of_three(4), (Kept{false, false, false}));
  EXPECT_EQ(kept_of_three(4, without(Rule::kBoundStash)), (Kept{true, true, true}));
}

TEST(OutboundTest, TheWindowIsBoundedByBytesAndTheOldestGoesFirst) {
  const auto kept_beside = [](std::int64_t bytes, const Mutant& mutant = {}) {
    Parts parts(window(kUnlimited, 3 * kBytes), mutant);
    const std::vector<ParcelRef> parcels = send(parts, 3);
    parts.evict_for(bytes);
    return kept(parcels);
  };
  EXPECT_EQ(kept_beside(0), (Kept{true, true, true}));
  EXPECT_EQ(kept_beside(1), (Kept{false, true, true}));
  EXPECT_EQ(kept_beside(kBytes + 1), (Kept{false, false, true}));
  EXPECT_EQ(kept_beside(4 * kBytes), (Kept{false, false, false})) << "larger than the window";
  EXPECT_EQ(kept_beside(kBytes, without(Rule::kBoundStash)), (Kept{true, true, true}));
}

// The pool may give the block out again at once, whichever stream evicts.
TEST(OutboundTest, WhatIsEvictedWaitsForItsCopyInTheStreamOfItsOwnPool) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    parts.compute_on(1);
    const ParcelRef parcel = parts.send(parts.world.make(kBytes));
    parts.compute_on(0);
    parts.evict();
    EXPECT_EQ(parts.live_storages(), 0);
    parts.compute_on(1);
    const Tensor next = parts.world.make(kBytes);  // in the block that was the source's
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(dropping(Step::kEvict)).empty());
  EXPECT_FALSE(hazards(without(Rule::kOwnerPool)).empty());
}

// Of the two streams that may still be at work on it, the one that packed it and the one that
// copies, neither is the stream of its pool: the pool itself waits for both.
TEST(OutboundTest, ASourceOfAnotherStreamsPoolIsLeftToThatPool) {
  const auto hazards_once_done = [](bool copied, const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    sim::Machine& machine = parts.world.machine();
    Tensor x = parts.world.make(kBytes);
    machine.wait(Step::kUser, parts.world.stream(1),
                 machine.record(Step::kUser, parts.world.stream(0)));
    parts.compute_on(1);
    const ParcelRef parcel = parts.send(x);
    parts.world.use(x);
    x.reset();
    parts.evict();
    EXPECT_EQ(parts.made(Step::kEvict), 0);
    const StreamId done = copied ? machine.lane(Lane::kDeviceToHost) : parts.world.stream(1);
    machine.synchronize(Step::kUser, done);
    parts.compute_on(0);
    const Tensor next = parts.world.make(kBytes);
    return parts.world.hazards();
  };
  for (const bool copied : {false, true}) {
    EXPECT_EQ(hazards_once_done(copied, {}), Text{});
    EXPECT_FALSE(hazards_once_done(copied, dropping(Step::kAbandon)).empty());
  }
}

// With copies on the stream that computes, the pool's own order keeps what is of that pool.
TEST(OutboundTest, WithoutCopyStreamsOnlySourcesOfOtherPoolsAreKept) {
  CoreOptions options = test::eager_options();
  options.copy_streams = CopyStreams::kNone;
  Parts parts(options);
  const Tensor x = parts.world.make(kBytes);
  EXPECT_EQ(parts.send(x)->kept, nullptr);
  parts.compute_on(1);
  EXPECT_EQ(parts.send(x)->kept, x->storage);
}

TEST(OutboundTest, ACopyThatFailsLeavesNothingAndMayBeTriedAgain) {
  for (const Step step : {Step::kProduced, Step::kOffloadAfterProducer, Step::kHostAllocate,
                          Step::kOffload, Step::kOffloaded}) {
    SCOPED_TRACE(name(step));
    Parts parts;
    Tensor x = parts.world.make(kBytes);
    parts.fails = step;
    EXPECT_THROW(parts.send(x), InjectedFault);
    EXPECT_EQ(parts.host_bytes(), 0);
    EXPECT_EQ(parts.context.statistics.offloaded_count, 0);
    EXPECT_TRUE(parts.outbound.empty());
    ParcelRef parcel = parts.send(x);
    x.reset();
    parts.end(parcel);
    parts.expect_clean();
  }
}

// Nobody has an event of the copy: the pool of the source waits for the copy's stream, and the host
// bytes for a later record on it. (Without copy streams the two copies are of different streams.)
TEST(OutboundTest, ACopyWhoseEndIsNotKnownIsProtectedAllTheSame) {
  const auto hazards = [](CopyStreams streams, const Mutant& mutant) {
    CoreOptions options = test::eager_options();
    options.copy_streams = streams;
    Parts parts(options, mutant);
    Tensor x = parts.world.make(kBytes);
    parts.fails = Step::kOffloaded;
    EXPECT_THROW(parts.send(x), InjectedFault);
    x.reset();
    const Tensor next = parts.world.make(kBytes);
    parts.compute_on(1);
    const ParcelRef other = parts.send(parts.world.make(kBytes));
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards(CopyStreams::kTwo, {}), Text{});
  EXPECT_FALSE(hazards(CopyStreams::kTwo, dropping(Step::kAbandon)).empty());
  EXPECT_EQ(hazards(CopyStreams::kNone, {}), Text{});
  EXPECT_FALSE(hazards(CopyStreams::kNone, dropping(Step::kHostReturn)).empty());
}

TEST(OutboundTest, AnEvictionThatFailsLeavesTheSourceForTheNextTry) {
  Parts parts;
  std::vector<ParcelRef> parcels = send(parts, 1);
  parts.fails = Step::kEvict;
  EXPECT_THROW(parts.evict(), InjectedFault);
  EXPECT_EQ(kept(parcels), Kept{true});
  parts.evict();
  EXPECT_EQ(kept(parcels), Kept{false});
  parts.end(parcels);
  parts.expect_clean();
}

// No stream that computes stalls for a copy in vain: the pool waits.
TEST(OutboundTest, AParcelThatDiesInTheWindowAbandonsItsSource) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    ParcelRef parcel = parts.send(parts.world.make(kBytes));
    parts.end(parcel);
    EXPECT_TRUE(parts.outbound.empty());
    EXPECT_EQ(parts.context.statistics.compute_waits, 0);
    const Tensor next = parts.world.make(kBytes);
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(dropping(Step::kAbandon)).empty());
}

// The next copy to the host may be given them while a reload still reads; it is of a stream that
// knows nothing of that reload.
TEST(OutboundTest, HostBytesGoBackAfterEveryCopyThatUsesThem) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    std::vector<ParcelRef> parcels = parts.away(1);
    parts.bring(parcels[0]);
    parts.end(parcels[0]);
    EXPECT_EQ(parts.host_bytes(), 0);
    sim::Machine& machine = parts.world.machine();
    machine.synchronize(Step::kUser, machine.lane(Lane::kDeviceToHost));
    parts.compute_on(1);
    const ParcelRef next = parts.send(parts.world.make(kBytes));
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(without(Rule::kHostEvents)).empty());
  EXPECT_FALSE(hazards(dropping(Step::kHostReturn)).empty());
}

}  // namespace
}  // namespace ferry
