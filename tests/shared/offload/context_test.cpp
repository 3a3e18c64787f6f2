#include "shared/offload/context.h"

#include <gtest/gtest.h>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::Parts;

TEST(ContextTest, TheStreamThatComputesIsTheCurrentOne) {
  const auto seen = [](const test::Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    parts.compute_on(1);
    EXPECT_EQ(parts.context.current(), parts.world.stream(1));
    parts.compute_on(2);
    return parts.context.current() == parts.world.stream(2) ? 2 : 1;
  };
  EXPECT_EQ(seen({}), 2);
  EXPECT_EQ(seen({{}, Mutation{Step::kUser, Bend::kStale}}), 1);
}

TEST(ContextTest, ABlockThatIsDroppedEarlyIsLeftToItsPool) {
  Parts parts;
  Tensor x = parts.world.make(kBytes);
  parts.context.protect(x->storage, parts.world.machine().lane(Lane::kDeviceToHost));
  x.reset();
  EXPECT_EQ(parts.live_storages(), 0);
  EXPECT_EQ(parts.made(Step::kAbandon), 1);
  EXPECT_EQ(parts.context.statistics.quarantined, 0);
}

// Nothing would tell when it may be used again.
TEST(ContextTest, ABlockThatItsPoolCannotTakeBackIsKeptForEverAndCounted) {
  Parts parts;
  for (int count = 1; count <= 2; ++count) {
    Tensor x = parts.world.make(kBytes);
    parts.fails = Step::kAbandon;
    parts.context.protect(x->storage, parts.world.machine().lane(Lane::kDeviceToHost));
    x.reset();
    EXPECT_EQ(parts.live_storages(), count);
    EXPECT_EQ(parts.context.statistics.quarantined, count);
  }
}

}  // namespace
}  // namespace ferry
