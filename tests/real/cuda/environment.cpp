// The process runs LibTorch on the virtual runtime: before the first test this is made certain of.
#include <gtest/gtest.h>

#include "vgpu/operators/libtorch.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {
namespace {

class OnTheVirtualGpu final : public testing::Environment {
 public:
  void SetUp() override {
    vgpu::start_libtorch();
    vgpu::reset();
  }
};

const auto* const kOnTheVirtualGpu = testing::AddGlobalTestEnvironment(new OnTheVirtualGpu);

}  // namespace
}  // namespace ferry::real
