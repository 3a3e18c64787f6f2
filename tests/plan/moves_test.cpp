// move_in_time with storages of 1 MiB: one is saved every 100 us, and backward begins with the
// last.
#include "plan/moves.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/candidates.h"
#include "tests/sim/support/sizes.h"

namespace ferry::plan {
namespace {

using test::kMiB;

constexpr sim::Time kUs = 1000;
constexpr std::size_t kPacks = 10;

Survey packs() {
  Survey survey;
  for (std::size_t p = 0; p < kPacks; ++p) {
    PackedTensor tensor;
    tensor.layout = contiguous_layout(DType::kF32, {kMiB / 4});
    tensor.group = p;
    tensor.storage_bytes = kMiB;
    tensor.kernels = static_cast<std::uint32_t>(p) + 1;
    survey.packs.push_back(tensor);
  }
  return survey;
}

std::vector<sim::Time> ends() {
  std::vector<sim::Time> ends;
  for (std::size_t k = 0; k <= kPacks; ++k) ends.push_back(static_cast<sim::Time>(k) * 100 * kUs);
  return ends;
}

struct Moved {
  std::vector<std::size_t> packs;
  CoreOptions options;
};

Moved moved(std::int64_t us_for_mib, std::int64_t pace, const Survey& survey = packs(),
            std::int64_t until = 100, std::int64_t room = 0) {
  Link link;
  link.d2h_alone = kMiB / us_for_mib;
  Mix mix = keep_all(survey);
  Moved found;
  move_in_time(mix, survey, ends(), ends().back(), link, {pace, until, 3, room}, found.options);
  for (std::size_t p = 0; p < mix.packs.size(); ++p) {
    if (mix.packs[p] == PlanChoice::kOffload) found.packs.push_back(p);
  }
  return found;
}

using Packs = std::vector<std::size_t>;

TEST(MoveInTimeTest, AQuickLinkTakesAllButTheLast) {
  const Moved found = moved(50, 100);
  EXPECT_EQ(found.packs, (Packs{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(found.options.window_tensors, 1);
  EXPECT_EQ(found.options.window_bytes, kUnlimited);
  EXPECT_EQ(found.options.prefetch_bytes, kUnlimited);
  EXPECT_EQ(found.options.prefetch_tensors, 3);
  EXPECT_EQ(found.options.hold_bytes, 4 * kMiB);
}

// Each copy ends within three saves, and the last copy ends before backward begins.
TEST(MoveInTimeTest, ASlowLinkTakesTheNextWhenItIsFree) {
  const Moved found = moved(299, 100);
  EXPECT_EQ(found.packs, (Packs{0, 3, 6}));
  EXPECT_EQ(found.options.window_tensors, 3);
  EXPECT_EQ(moved(299, 50).packs, (Packs{0, 6}));
}

// The third tensor is saved at 500 us, and its copy ends at 997 us: five saves later.
TEST(MoveInTimeTest, AtAHigherPaceCopiesQueue) {
  const Moved found = moved(299, 200);
  EXPECT_EQ(found.packs, (Packs{0, 2, 4}));
  EXPECT_EQ(found.options.window_tensors, 5);
  EXPECT_EQ(moved(299, 1000).packs, (Packs{0, 1, 2})) << "the first, as many as the link carries";
}

TEST(MoveInTimeTest, AShorterTimeTakesTheFirst) {
  EXPECT_EQ(moved(299, 100, packs(), 70).packs, (Packs{0, 3}));
}

// The copy of the first tensor ends six saves later. After the other tensor fewer than six saves
// follow, so it is in the window when backward begins.
TEST(MoveInTimeTest, WhatIsCopiedWhenBackwardBeginsMovesThoughTheWindowHasIt) {
  Survey survey = packs();
  survey.packs[0].storage_bytes = 2 * kMiB;
  const Moved found = moved(299, 100, survey);
  EXPECT_EQ(found.packs, (Packs{0, 6}));
  EXPECT_EQ(found.options.window_tensors, 6);
}

TEST(MoveInTimeTest, ByRoomNothingLeavesWhenBackwardBegins) {
  Survey survey = packs();
  survey.packs[0].storage_bytes = 2 * kMiB;
  const Moved found = moved(299, 100, survey, 100, 2);
  EXPECT_EQ(found.packs, (Packs{0})) << "the other would be in the window";
  EXPECT_EQ(found.options.window_tensors, 6);
  EXPECT_EQ(found.options.window_bytes, kUnlimited);
  EXPECT_EQ(found.options.prefetch_bytes, 4 * kMiB) << "two of the largest that moves";
  EXPECT_EQ(found.options.hold_bytes, 4 * kMiB);
  EXPECT_EQ(found.options.prefetch_tensors, CoreOptions().prefetch_tensors);
  EXPECT_EQ(moved(299, 100, packs(), 100, 1).packs, (Packs{0, 3, 6}));
}

TEST(MoveInTimeTest, WhatIsNotCopiedWhenBackwardBeginsDoesNotMove) {
  Survey survey = packs();
  survey.packs[0].storage_bytes = 4 * kMiB;
  EXPECT_EQ(moved(299, 100, survey).packs, (Packs{1, 4}));
  EXPECT_TRUE(moved(1000, 100).packs.empty());
  EXPECT_TRUE(moved(299, 100, Survey{}).packs.empty());
}

}  // namespace
}  // namespace ferry::plan
