#include "verify/campaign/ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::verify {
namespace {

TriedBlock tried(const ProgramRange& block, std::optional<std::uint64_t> failure = std::nullopt) {
  TriedBlock result{.block = block, .coverage = {}, .failure = {}};
  const std::uint64_t end = failure ? *failure + 1 : block.end;
  result.coverage.programs = static_cast<std::int64_t>(end - block.first);
  if (failure) result.failure = Failure{*failure, {}, {}};
  return result;
}

TEST(Ledger, HandsOutEveryNumberOnceAndInOrder) {
  Ledger ledger(10, 4, [] { return false; });
  std::vector<std::uint64_t> ends;
  while (const std::optional<ProgramRange> block = ledger.take()) {
    EXPECT_EQ(block->first, ends.empty() ? 0 : ends.back());
    ends.push_back(block->end);
    ledger.give(tried(*block));
  }
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{4, 8, 10}));
  EXPECT_EQ(ledger.coverage().programs, 10);
  EXPECT_FALSE(ledger.failure());
}

// In whatever order blocks come back, what counts is what comes before the first failure.
TEST(Ledger, CountsUpToTheFirstFailure) {
  const std::vector<std::vector<std::size_t>> orders = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
  for (const std::vector<std::size_t>& order : orders) {
    Ledger ledger(100, 10, [] { return false; });
    std::vector<ProgramRange> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(ledger.take().value());
    for (const std::size_t i : order) {
      ledger.give(tried(blocks[i], i == 1   ? std::optional<std::uint64_t>(13)
                                   : i == 3 ? std::optional<std::uint64_t>(31)
                                            : std::nullopt));
    }
    EXPECT_EQ(ledger.failure()->number, 13u);
    EXPECT_EQ(ledger.coverage().programs, 14);
    EXPECT_FALSE(ledger.take());
  }
}

TEST(Ledger, WaitsForBlocksBeforeTheFailureAndForNoOthers) {
  Ledger ledger(100, 10, [] { return false; });
  const ProgramRange a = ledger.take().value(), b = ledger.take().value();
  ledger.take();
  ledger.give(tried(b, 12));
  EXPECT_TRUE(ledger.is_waiting());
  ledger.give(tried(a));
  EXPECT_FALSE(ledger.is_waiting());
  EXPECT_EQ(ledger.coverage().programs, 13);
}

TEST(Ledger, IsEmptyWhenItIsLate) {
  bool late = false;
  Ledger ledger(100, 10, [&late] { return late; });
  EXPECT_TRUE(ledger.take());
  late = true;
  EXPECT_FALSE(ledger.take());
}

// Whatever order they come back in: what is settled has no gap, and nothing that time cut short.
TEST(Ledger, SettlesWhatWasTriedWhole) {
  Ledger ledger(100, 10, [] { return false; });
  const ProgramRange a = ledger.take().value(), b = ledger.take().value(),
                     c = ledger.take().value();
  ledger.give(tried(b));
  EXPECT_EQ(ledger.settled().end, 0u);
  ledger.give(tried(a));
  EXPECT_EQ(ledger.settled().end, 20u);
  TriedBlock cut = tried(c);
  cut.coverage.programs = 3;
  ledger.give(cut);
  EXPECT_EQ(ledger.settled().end, 20u);
  EXPECT_EQ(ledger.settled().coverage.programs, 20);
  EXPECT_EQ(ledger.coverage().programs, 23);
}

TEST(Ledger, GoesOnFromWhatWasSettled) {
  Settled before;
  before.end = 80;
  before.coverage.programs = 80;
  Ledger ledger(
      100, 10, [] { return false; }, before);
  const ProgramRange first = ledger.take().value();
  EXPECT_EQ(first.first, 80u);
  ledger.give(tried(first, 85));
  EXPECT_FALSE(ledger.take());
  EXPECT_EQ(ledger.coverage().programs, 86);
  EXPECT_EQ(ledger.settled().end, 80u) << "the failure is found again";
}

}  // namespace
}  // namespace ferry::verify
