// Runs: where their packs are numbered from, and what automatic bounds know of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using test::kBytes;
using test::Rig;
using test::SaveRef;

// Other offloaders of the same forward have the ordinals before.
TEST(OffloaderRuns, ARunGoesOnAtTheOrdinalThatItIsGiven) {
  Rig rig;
  std::vector<SaveRef> saves;
  const auto pack = [&] { saves.push_back(rig.pack(rig.world.make(kBytes))); };
  rig.offloader.continue_at(3, 7);
  pack();
  pack();
  rig.offloader.continue_at(3, 20);
  pack();
  rig.offloader.continue_at(5, 0);
  pack();
  rig.offloader.begin_run();
  pack();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> packs;
  for (const Decision& decision : rig.decisions) {
    if (decision.kind == DecisionKind::kPack) packs.emplace_back(decision.run, decision.pack);
  }
  EXPECT_EQ(packs, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                       {3, 7}, {3, 8}, {3, 20}, {5, 0}, {6, 0}}));
}

// Automatic: a sixteenth of what was on the host at once, in this run or the one before.
class AutomaticBound : public ::testing::Test {
 protected:
  static CoreOptions automatic() {
    CoreOptions options = test::eager_options();
    options.prefetch_bytes = kAutomatic;
    return options;
  }
  // Packs as many tensors, then goes backward: how many come back ahead of the first's use?
  std::int64_t ahead(
      int tensors, const std::function<void(int)>& before_pack = [](int) {}) {
    std::vector<SaveRef> saves;
    for (int i = 0; i < tensors; ++i) {
      before_pack(i);
      saves.push_back(rig.pack(rig.world.make(kBytes)));
    }
    rig.evict();
    const std::int64_t before = rig.offloader.statistics().prefetched_count;
    std::int64_t count = 0;
    rig.script.backward([&] {
      rig.consume(saves.back());
      count = rig.offloader.statistics().prefetched_count - before;
    });
    return count;
  }

  Rig rig{automatic()};
};

TEST_F(AutomaticBound, FollowsThisRunAndTheOneBefore) {
  for (const auto& [tensors, expected] :
       {std::pair{16, 1}, {16, 1}, {16, 1}, {32, 2}, {16, 2}, {16, 1}, {16, 1}}) {
    rig.offloader.begin_run();
    EXPECT_EQ(ahead(tensors), expected);
  }
}

TEST_F(AutomaticBound, FollowsRunsThatAreContinuedAllTheSame) {
  std::uint64_t run = 0;
  for (const auto& [tensors, expected] : {std::pair{32, 2}, {16, 2}, {16, 1}, {16, 1}}) {
    ++run;
    EXPECT_EQ(ahead(tensors,
                    [&](int i) { rig.offloader.continue_at(run, static_cast<std::uint64_t>(i)); }),
              expected);
  }
}

}  // namespace
}  // namespace ferry
