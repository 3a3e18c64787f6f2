// The process runs LibTorch on the fake runtime: before the first test this is made certain of.
#include <gtest/gtest.h>

#include "tests/real/fake_cuda/fake_cuda.h"
#include "tests/real/fake_kernels/libtorch.h"

namespace ferry::real {
namespace {

class OnTheFake final : public testing::Environment {
 public:
  void SetUp() override {
    fake_kernels::start_libtorch();
    fake_cuda::reset();
  }
};

const auto* const kOnTheFake = testing::AddGlobalTestEnvironment(new OnTheFake);

}  // namespace
}  // namespace ferry::real
