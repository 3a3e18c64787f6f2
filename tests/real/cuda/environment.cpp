// The process runs LibTorch on the fake runtime: before the first test this is made certain of.
#include <gtest/gtest.h>

#include "vgpu/operators/libtorch.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {
namespace {

class OnTheFake final : public testing::Environment {
 public:
  void SetUp() override {
    vgpu::start_libtorch();
    vgpu::reset();
  }
};

const auto* const kOnTheFake = testing::AddGlobalTestEnvironment(new OnTheFake);

}  // namespace
}  // namespace ferry::real
