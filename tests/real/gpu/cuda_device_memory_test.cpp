// A GPU's memory that runs out: what does not fit fits with offloading; where even that does not,
// the error reaches the caller, nothing is left, and the next step works.
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "ferry/offload.h"
#include "real/cuda/cuda_device.h"
#include "tests/real/gpu/trained.h"

namespace ferry::real {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr std::int64_t kElements = 8 << 20;  // 32 MiB
constexpr int kLayers = 16;

// The process may have so many bytes of the device, while this lives.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t bytes) {
    allocator::emptyCache();
    std::size_t free = 0;
    std::size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    allocator::setMemoryFraction(static_cast<double>(bytes) / static_cast<double>(total), 0);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { allocator::setMemoryFraction(1.0, 0); }
};

// Each layer saves its output: 512 MiB in all.
Tensors step() {
  torch::manual_seed(5);
  const at::Tensor input = torch::rand({kElements}, at::kCUDA).requires_grad_();
  at::Tensor x = input;
  for (int layer = 0; layer < kLayers; ++layer) x = x.sigmoid();
  const at::Tensor loss = x.sum();
  loss.backward();
  return {loss.detach(), input.grad()};
}

Offload offloader() {
  return Offload(
      OffloadOptions().device(at::Device(at::kCUDA, 0)).window_tensors(1).prefetch(0).hold(0));
}

class MemoryOnGpu : public testing::Test {
 protected:
  static constexpr std::int64_t kLayerBytes = kElements * 4;
  // What the plain step needs is 16 layers and the ends; offloaded, a few layers at a time.
  static constexpr std::int64_t kHalf = 10 * kLayerBytes;
  static constexpr std::int64_t kNothing = 3 * kLayerBytes;
};

TEST_F(MemoryOnGpu, SufficesWithOffloadingWhereItDoesNotWithout) {
  const Tensors expected = step();
  Offload offload = offloader();
  const MemoryLimit limit(kHalf);
  EXPECT_THROW(step(), c10::OutOfMemoryError);
  allocator::emptyCache();
  const OffloadGuard guard(offload);
  EXPECT_EQ(difference(expected, step()), "");
}

TEST_F(MemoryOnGpu, ThatIsNotThereIsAnErrorAndTheNextStepWorks) {
  const Tensors expected = step();
  Offload offload = offloader();
  {
    const MemoryLimit limit(kNothing);
    const OffloadGuard guard(offload);
    EXPECT_THROW(step(), c10::OutOfMemoryError);
  }
  EXPECT_TRUE(offload.empty());
  const OffloadGuard guard(offload);
  EXPECT_EQ(difference(expected, step()), "");
}

}  // namespace
}  // namespace ferry::real
