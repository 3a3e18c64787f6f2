#include "sim/run/training/hardware_model.h"

#include <gtest/gtest.h>

#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;
using Bytes = std::vector<std::int64_t>;

Hardware hopper() {
  Hardware card;
  card.compute_capability = 90;
  card.multiprocessors = 132;
  return card;
}

TEST(CudaMemoryModel, AWorkspaceIsKeptOrOneCallsAlone) {
  const Layout matrix{DType::kF32, {4, 4}, {4, 1}, 0}, bias{DType::kF32, {4}, {1}, 0};
  const Layout* const results[] = {&matrix};
  const Layout* const two[] = {&matrix, &matrix};
  const Layout* const added[] = {&bias, &matrix, &matrix};

  const CudaMemory kept(hopper(), std::nullopt, true);
  EXPECT_EQ(kept.workspaces("aten.mm", two), (Bytes{32 * kMiB, 0}));
  EXPECT_EQ(kept.workspaces("aten.addmm", added), (Bytes{32 * kMiB, kMiB}));
  EXPECT_EQ(kept.temporaries("aten.mm", two, results), Bytes{});

  const CudaMemory given_back(hopper(), std::nullopt, false);
  EXPECT_EQ(given_back.workspaces("aten.addmm", added), Bytes{});
  EXPECT_EQ(given_back.temporaries("aten.mm", two, results), Bytes{32 * kMiB});
  EXPECT_EQ(given_back.temporaries("aten.addmm", added, results), Bytes{kMiB}) << "cuBLASLt alone";
  EXPECT_EQ(given_back.temporaries("aten.relu", two, results), Bytes{});
  EXPECT_EQ(CudaMemory(hopper(), 5 * kMiB, false).temporaries("aten.mm", two, results),
            Bytes{5 * kMiB});
  EXPECT_EQ(CudaMemory(Hardware(), std::nullopt, false).temporaries("aten.mm", two, results),
            Bytes{})
      << "no GPU";
}

}  // namespace
}  // namespace ferry::sim
