// Where cudaMalloc's memory lies: below what it gave before, as drivers put it, or above.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class DeviceAddressesTest : public testing::Test {
 protected:
  ~DeviceAddressesTest() override {
    for (void* const each : taken_) cudaFree(each);
    put_segments_upwards(false);
    keep_addresses(false);
    reset();
  }
  // In MiB, where the memory of so many begins.
  std::int64_t take(std::size_t mib) {
    void* address = nullptr;
    EXPECT_EQ(cudaMalloc(&address, mib * kMiB), cudaSuccess);
    std::memset(address, 1, 1);  // it is memory
    taken_.push_back(address);
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) / kMiB);
  }

 private:
  std::vector<void*> taken_;
};

TEST_F(DeviceAddressesTest, GoDownInPiecesWhoseRestsAreFilled) {
  const std::int64_t first = take(40);
  EXPECT_EQ(take(2), first + 40);
  EXPECT_EQ(take(32), first - 32);
  EXPECT_EQ(take(20), first + 42);  // of the 22 that were left
  EXPECT_EQ(take(20), first - 64);
}

TEST_F(DeviceAddressesTest, OrUp) {
  put_segments_upwards(true);
  const std::int64_t first = take(40);
  EXPECT_EQ(take(2), first + 40);
  EXPECT_EQ(take(32), first + 42);
}

TEST_F(DeviceAddressesTest, OnesThatAreKeptAreNotGivenOutAgain) {
  for (const bool kept : {false, true}) {
    keep_addresses(kept);
    void *first = nullptr, *second = nullptr;
    ASSERT_EQ(cudaMalloc(&first, 40 * kMiB), cudaSuccess);
    ASSERT_EQ(cudaFree(first), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&second, 40 * kMiB), cudaSuccess);
    ASSERT_EQ(cudaFree(second), cudaSuccess);
    EXPECT_EQ(first == second, !kept);
  }
}

}  // namespace
}  // namespace ferry::vgpu
