// The process runs LibTorch on the fake runtime, with the fake's kernels.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/real/fake_cuda/fake_cuda.h"
#include "tests/real/fake_kernels/kernels.h"
#include "tests/real/fake_kernels/libtorch.h"

namespace ferry::real {
namespace {

class OnTheFakeGpu final : public testing::Environment {
 public:
  void SetUp() override {
    at::set_num_threads(1);
    fake_kernels::start_libtorch();
    fake_kernels::install_kernels();
    fake_cuda::reset();
  }
};

const auto* const kOnTheFakeGpu = testing::AddGlobalTestEnvironment(new OnTheFakeGpu);

}  // namespace
}  // namespace ferry::real
