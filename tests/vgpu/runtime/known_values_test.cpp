#include "vgpu/runtime/known_values.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::vgpu {
namespace {

using Ranges = std::vector<Range>;

constexpr Range kKnown{1000, 100};
constexpr Range kUnknown{2000, 100};
constexpr Range kResult{3000, 100};

class KnownValuesTest : public testing::Test {
 protected:
  KnownValuesTest() {
    values_.set(KernelValues::kZeros);
    values_.add(kKnown);
  }
  KnownValues values_;
};

TEST_F(KnownValuesTest, AKernelComputesFromKnownBytesAlone) {
  EXPECT_TRUE(values_.computes(Ranges{kKnown}, Ranges{kResult}));
  EXPECT_FALSE(values_.computes(Ranges{kKnown, kUnknown}, Ranges{kResult}));
  EXPECT_TRUE(values_.computes({}, Ranges{kResult}));
}

TEST_F(KnownValuesTest, AndOfFewBytes) {
  EXPECT_TRUE(values_.computes(Ranges{kKnown}, Ranges{{5000, kFewBytes - kKnown.bytes}}));
  EXPECT_FALSE(values_.computes(Ranges{kKnown}, Ranges{{5000, kFewBytes}}));
}

TEST_F(KnownValuesTest, ToAskMakesNothingKnown) {
  EXPECT_TRUE(values_.computes(Ranges{kKnown}, Ranges{kResult}));
  EXPECT_FALSE(values_.is_known(kResult));
  values_.note_written(Ranges{kResult}, true);
  EXPECT_TRUE(values_.is_known(kResult));
  EXPECT_FALSE(values_.computes(Ranges{kUnknown}, Ranges{kResult}));
  EXPECT_TRUE(values_.is_known(kResult));
  values_.note_written(Ranges{kResult}, false);
  EXPECT_FALSE(values_.is_known(kResult));
}

TEST_F(KnownValuesTest, WhereAllIsComputedAllIsKnown) {
  values_.set(KernelValues::kComputed);
  EXPECT_TRUE(values_.computes(Ranges{kUnknown}, Ranges{{5000, 2 * kFewBytes}}));
  EXPECT_TRUE(values_.is_known(kUnknown));
}

}  // namespace
}  // namespace ferry::vgpu
