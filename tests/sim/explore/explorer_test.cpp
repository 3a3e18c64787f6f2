// One race of each kind: the schedule that shows it, and what is seen. Pools, and what they
// promise.
#include "sim/explore/explorer.h"

#include <gtest/gtest.h>

#include "tests/sim/support/calls.h"

namespace ferry::explore {
namespace {

constexpr Range kX{0x1000, 16}, kY{0x1010, 16}, kPinned{check::kHostBase, 16};

// "schedule: what is seen" of the only hazard.
std::string confirmed(const test::Calls& calls) {
  if (calls.hazards().size() != 1) return std::to_string(calls.hazards().size()) + " hazards";
  const Explorer explorer(calls.recording());
  const Confirmation c = explorer.confirm(calls.hazards()[0]);
  if (c.result == Confirmation::Result::kUndefined) return "undefined";
  if (c.result != Confirmation::Result::kConfirmed) return "unconfirmed";
  return to_string(explorer.graph(), c.witness->schedule) + ": " + to_string(explorer, *c.witness);
}

// Schedules in all, where none shows anything; 0 where one does.
std::uint64_t safe_orders(const test::Calls& calls) {
  const Explorer explorer(calls.recording());
  const Search search = explorer.search_all(1000);
  return search.complete ? search.orders : 0;
}

TEST(Explorer, AReadTooEarlySeesWhatWasThere) {
  EXPECT_EQ(confirmed(test::Calls().kernel(0, {}, {kX}, "a").kernel(1, {kX}, {kY}, "b")),
            "0@1: b #1 reads 16 bytes at 0x1000: undefined, not what a #0 wrote");
}

TEST(Explorer, AWriteTooEarlyIsSeenByTheRead) {
  EXPECT_EQ(confirmed(test::Calls().kernel(0, {kX}, {}, "a").kernel(1, {}, {kX}, "b")),
            "0@1: a #0 reads 16 bytes at 0x1000: what b #1 wrote, not undefined");
}

TEST(Explorer, TheLastOfTwoWritesCounts) {
  EXPECT_EQ(confirmed(test::Calls().kernel(0, {}, {kX}, "a").kernel(1, {}, {kX}, "b")),
            "0@1: at the end 16 bytes at 0x1000 hold what a #0 wrote, not what b #1 wrote");
  EXPECT_EQ(confirmed(test::Calls()
                          .alloc(0, kX)
                          .kernel(0, {}, {kX}, "a")
                          .kernel(1, {}, {kX}, "b")
                          .stream_sync(0)
                          .free(kX)),
            "1@2: b #2 overwrites 16 bytes at 0x1000: undefined, not what a #1 wrote (nobody reads "
            "it)");
}

TEST(Explorer, ABlockHandedOutTooEarly) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(0, {}, {kX}, "a").record(1, 0).wait(1, 1).kernel(1, {kX}, {kY}, "b");
  calls.free(kX).alloc(0, kX).kernel(0, {}, {kX}, "c");
  EXPECT_EQ(confirmed(calls),
            "4@7: b #4 reads 16 bytes at 0x1000: what c #7 wrote, not what a #1 wrote");
}

TEST(Explorer, APoolThatWaitedHandsOutAnotherBlockMeanwhile) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(0, {}, {kX}).record(1, 0).wait(1, 1).kernel(1, {kX}, {kY});
  calls.record_use(1, kX).free(kX).alloc(0, kX).kernel(0, {}, {kX});
  // The allocation may come at any time, and its kernel then, after the first one.
  EXPECT_EQ(safe_orders(calls), 5u);
  test::Calls told;
  told.alloc(0, kX).kernel(0, {}, {kX}).record(1, 0).wait(1, 1).kernel(1, {kX}, {kY});
  told.record(2, 1).use_until(2, kX).free(kX).alloc(0, kX).kernel(0, {}, {kX});
  EXPECT_EQ(safe_orders(told), 5u);
}

TEST(Explorer, WhatThePoolWaitedForIsNoOrder) {
  // The kernels on Y race: had the pool not been able to reuse X, nothing would order them.
  test::Calls calls;
  calls.alloc(0, kX).kernel(1, {}, {kX, kY}, "a").record_use(1, kX).free(kX);
  calls.alloc(0, kX).kernel(0, {}, {kX, kY}, "b");
  EXPECT_EQ(confirmed(calls),
            "1@5: at the end 16 bytes at 0x1010 hold what a #1 wrote, not what b #5 wrote");
}

TEST(Explorer, AUseThatThePoolWasNotToldOf) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(1, {kX}, {}, "told").kernel(2, {kX}, {}, "untold");
  calls.record_use(1, kX).free(kX).alloc(0, kX).kernel(0, {}, {kX}, "c");
  EXPECT_EQ(confirmed(calls),
            "2@6: untold #2 reads 16 bytes at 0x1000: what c #6 wrote, not undefined");
}

TEST(Explorer, APoolThatWaitsForAnEventWaitsForNoMore) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(1, {kX}, {}, "told").record(1, 1).kernel(1, {kX}, {}, "untold");
  calls.use_until(1, kX).free(kX).alloc(0, kX).kernel(0, {}, {kX}, "c");
  EXPECT_EQ(confirmed(calls),
            "3@7: untold #3 reads 16 bytes at 0x1000: what c #7 wrote, not undefined");
}

TEST(Explorer, CudaFreeWaits) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(1, {}, {kX}).free(kX, PoolKind::kMalloc).alloc(0, kX);
  EXPECT_EQ(safe_orders(calls.kernel(0, {}, {kX})), 2u);
}

TEST(Explorer, AStagedCopyReadsOnTheHost) {
  // Nothing can write the source under it; the destination is written whenever the stream gets
  // there.
  test::Calls calls;
  calls.host_write(kPinned).copy(1, kPinned, kX, Step::kUser, HostOrder::kStaged);
  calls.host_write(kPinned);
  EXPECT_EQ(safe_orders(calls), 2u);
  EXPECT_EQ(confirmed(calls.kernel(0, {kX}, {}, "k")),
            "1@3: k #3 reads 16 bytes at 0x1000: undefined, not what copy #1 wrote");
}

TEST(Explorer, ATornCopyCountsOnceItIsRead) {
  test::Calls calls;
  calls.kernel(0, {}, {kX}, "a").record(1, 0).wait(1, 1).copy(1, kX, kPinned, Step::kOffload);
  calls.kernel(0, {}, {kX}, "write_");
  EXPECT_TRUE(calls.hazards().empty());
  const Explorer explorer(calls.recording());
  EXPECT_EQ(explorer.search_all(1000).witness->difference.evidence, Evidence::kUnread);
  EXPECT_EQ(confirmed(calls.copy(1, kPinned, kY, Step::kReload)),
            "3@4: `reload` #5 reads 16 bytes at 0x1000000000000000: what `offload` #3 wrote, and "
            "`offload` #3 reads 16 bytes at 0x1000: what write_ #4 wrote, not what a #0 wrote");
}

TEST(Explorer, HostMemoryFreedUnderACopy) {
  const auto seen = [](const test::Calls& calls) {
    const Explorer explorer(calls.recording(), true);
    check::HappensBefore checker({.host_free_waits = true});
    for (std::size_t i = 0; i < calls.recording().size(); ++i) checker(calls.recording()[i]);
    if (checker.hazards().empty()) {
      return explorer.search_all(1000).complete ? std::string("safe") : "silent, and not safe";
    }
    const Confirmation c = explorer.confirm(checker.hazards()[0]);
    return c.witness ? to_string(explorer, *c.witness) : "unconfirmed";
  };
  const auto copied = [](test::Calls& calls) -> test::Calls& {
    return calls.alloc(0, kPinned).host_write(kPinned).copy(1, kPinned, kX);
  };
  test::Calls freed, told, until, early, waited;
  EXPECT_EQ(
      seen(copied(freed).free(kPinned)),
      "copy #2 reads 16 bytes at 0x1000000000000000: what free #3 left, not what host write #1 "
      "wrote");
  EXPECT_EQ(seen(copied(told).record_use(1, kPinned).free(kPinned)), "safe");
  EXPECT_EQ(seen(copied(until).record(1, 1).use_until(1, kPinned).free(kPinned)), "safe");
  EXPECT_EQ(
      seen(copied(early.record(1, 1)).use_until(1, kPinned).free(kPinned)),
      "copy #3 reads 16 bytes at 0x1000000000000000: what free #5 left, not what host write #2 "
      "wrote");
  EXPECT_EQ(seen(copied(waited).stream_sync(1).free(kPinned)), "safe");
}

TEST(Explorer, WhatNobodyWroteHasNoRightValue) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(1, {}, {kX}).free(kX).alloc(0, kX).kernel(0, {kX}, {});
  EXPECT_EQ(confirmed(calls), "undefined");
}

TEST(Explorer, AnotherRaceIsNoWitness) {
  // 0 and 2 race on X; 0 and 3 have no bytes in common.
  test::Calls calls;
  calls.kernel(0, {}, {kX}).record(1, 0).kernel(1, {kX}, {}).kernel(2, {}, {kY});
  check::Hazard hazard;
  hazard.range = kY;
  hazard.later.op = 3;
  hazard.later.stream = StreamId{2};
  EXPECT_EQ(Explorer(calls.recording()).confirm(hazard).result, Confirmation::Result::kUnconfirmed);
}

TEST(Explorer, OrderedAccessesAreNotConfirmed) {
  test::Calls calls;
  calls.kernel(0, {}, {kX}).record(1, 0).wait(1, 1).kernel(1, {kX}, {});
  check::Hazard hazard;
  hazard.earlier.op = 0;
  hazard.later.op = 3;
  EXPECT_EQ(Explorer(calls.recording()).confirm(hazard).result, Confirmation::Result::kUnconfirmed);
  hazard.kind = check::HazardKind::kLeak;
  EXPECT_EQ(Explorer(calls.recording()).confirm(hazard).result, Confirmation::Result::kNotARace);
}

}  // namespace
}  // namespace ferry::explore
