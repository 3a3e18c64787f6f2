// The process runs LibTorch on the virtual runtime, with the virtual GPU's kernels.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "vgpu/operators/kernels.h"
#include "vgpu/operators/libtorch.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {
namespace {

class OnTheVirtualGpu final : public testing::Environment {
 public:
  void SetUp() override {
    at::set_num_threads(1);
    vgpu::start_libtorch();
    vgpu::install_kernels();
    vgpu::reset();
  }
};

const auto* const kOnTheVirtualGpu = testing::AddGlobalTestEnvironment(new OnTheVirtualGpu);

}  // namespace
}  // namespace ferry::real
