// What comes back ahead of its use, and what does not.
#include <gtest/gtest.h>

#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::Back;
using test::back;
using test::kBytes;
using test::kTask;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;

constexpr GraphTaskId kLater{8};

CoreOptions prefetching() {
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = kUnlimited;
  return options;
}

TEST(InboundPrefetch, ItGoesNoFurtherThanSoManyPacks) {
  const auto ahead_of_the_last = [](std::int64_t packs, const Mutant& mutant = {}) {
    CoreOptions options = prefetching();
    options.prefetch_tensors = packs;
    Parts parts(options, mutant);
    const std::vector<ParcelRef> parcels = parts.away(4);
    parts.inbound.begin_task(kTask, 4);
    parts.prefetch(parcels[3], kTask);
    return back(parcels);
  };
  EXPECT_EQ(ahead_of_the_last(0), (Back{false, false, false, false}));
  EXPECT_EQ(ahead_of_the_last(1), (Back{false, false, true, false}));
  EXPECT_EQ(ahead_of_the_last(2), (Back{false, true, true, false}));
  EXPECT_EQ(ahead_of_the_last(1, without(Rule::kBoundReloads)), (Back{true, true, true, false}));
}

// Backward does not come to all that was saved: what it passed by is not needed soon.
TEST(InboundPrefetch, WhereBackwardSkipsSomeSavesItLooksAheadFromWhereItIs) {
  CoreOptions options = prefetching();
  options.prefetch_tensors = 1;
  Parts parts(options);
  const std::vector<ParcelRef> parcels = parts.away(5);
  parts.inbound.begin_task(kTask, 5);
  parts.prefetch(parcels[4], kTask);
  EXPECT_EQ(back(parcels), (Back{false, false, false, true, false}));
  parts.prefetch(parcels[1], kTask);
  EXPECT_EQ(back(parcels), (Back{true, false, false, true, false}));
}

TEST(InboundPrefetch, WhatTheTaskHasUnpackedForAllItsSavesStaysAway) {
  Parts parts(prefetching());
  std::vector<ParcelRef> parcels = parts.away(3);
  parts.inbound.begin_task(kTask, 3);
  parts.run_node(parcels[1], kTask);
  parts.prefetch(parcels[2], kTask);
  EXPECT_EQ(back(parcels), (Back{true, false, false}));
  parts.end_task(kTask);
  parts.inbound.begin_task(kLater, 3);
  parts.prefetch(parcels[2], kLater);
  EXPECT_EQ(back(parcels), (Back{true, true, false})) << "a second backward needs it again";
  parts.end_task(kLater);
  parts.end(parcels);
  parts.expect_clean();
}

TEST(InboundPrefetch, WhatHasASaveLeftInTheTaskComesBackOnceMore) {
  Parts parts(prefetching());
  const std::vector<ParcelRef> parcels = parts.away(3);
  parcels[1]->saves = 2;
  parts.inbound.begin_task(kTask, 3);
  parts.run_node(parcels[1], kTask);
  ASSERT_EQ(back(parcels), (Back{false, false, false})) << "nothing is held";
  parts.prefetch(parcels[2], kTask);
  EXPECT_EQ(back(parcels), (Back{true, true, false}));
}

// To look whether a source still lives is to hold it, perhaps as the last one: it must not go under
// the core's lock.
TEST(InboundPrefetch, ASourceThatItLooksAtGoesWithTheBin) {
  Parts parts(prefetching());
  std::vector<ParcelRef> parcels = parts.away(1);
  const Tensor alive = parts.world.make(kBytes);
  parcels.push_back(parts.send(alive));
  parcels.push_back(parts.away(1)[0]);
  parts.inbound.begin_task(kTask, 3);
  Bin<Parts::Device> bin;
  parts.inbound.prefetch(parts.run, parcels[2]->sequence, parts.context.current(), kTask, bin);
  EXPECT_EQ(back(parcels), (Back{true, false, false}));
  EXPECT_EQ(bin.storages, std::vector{alive->storage});
}

// The end of such a task will not come; another thread of it may have looked ahead by then.
TEST(InboundPrefetch, WhatACancelledTaskHasPrefetchedGoesAtOnceAndNothingMoreComes) {
  Parts parts(prefetching());
  std::vector<ParcelRef> parcels = parts.away(2);
  parts.inbound.begin_task(kTask, 2);
  parts.prefetch(parcels[1], kTask);
  EXPECT_FALSE(parts.inbound.empty());
  parts.cancel_task(kTask);
  EXPECT_TRUE(parts.inbound.empty());
  EXPECT_EQ(back(parcels), (Back{false, false}));
  parts.prefetch(parcels[1], kTask);
  EXPECT_EQ(back(parcels), (Back{false, false}));
  parts.end(parcels);
  parts.expect_clean();
}

}  // namespace
}  // namespace ferry
