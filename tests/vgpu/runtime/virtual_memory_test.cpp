#include "vgpu/runtime/virtual_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

template <class Function>
Function* entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &result);
  return reinterpret_cast<Function*>(found);
}

// As LibTorch's allocator calls them.
class VirtualMemoryTest : public testing::Test {
 protected:
  VirtualMemoryTest() {
    set_devices(2);
    set_device_bytes(std::int64_t{3} * kPiece);
    EXPECT_EQ(reserve_(&base_, 8 * kPiece, 0, 0, 0), CUDA_SUCCESS);
  }
  ~VirtualMemoryTest() override {
    EXPECT_EQ(give_back_(base_, 8 * kPiece), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(0), 3 * kPiece);
    set_device_bytes(std::int64_t{256} << 20);
    reset();
  }

  CUresult create(CUmemGenericAllocationHandle* piece, int device = 0, std::size_t bytes = kPiece) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return create_(piece, bytes, &properties, 0);
  }
  CUresult map(int at, CUmemGenericAllocationHandle piece) {
    return map_(base_ + static_cast<std::size_t>(at) * kPiece, kPiece, 0, piece, 0);
  }
  CUresult unmap(int at, int pieces = 1) {
    return unmap_(base_ + static_cast<std::size_t>(at) * kPiece,
                  static_cast<std::size_t>(pieces) * kPiece);
  }
  void* at(int piece) const {
    return reinterpret_cast<void*>(base_ + static_cast<std::size_t>(piece) * kPiece);
  }
  static std::size_t free_bytes(int device) {
    std::size_t free = 0;
    std::size_t total = 0;
    cudaSetDevice(device);
    cudaMemGetInfo(&free, &total);
    cudaSetDevice(0);
    return free;
  }

  CUdeviceptr base_ = 0;
  decltype(&cuMemAddressReserve) reserve_ =
      entry<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) give_back_ = entry<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create_ = entry<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release_ = entry<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map_ = entry<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap_ = entry<decltype(cuMemUnmap)>("cuMemUnmap");
};

TEST_F(VirtualMemoryTest, PiecesBesideEachOtherAreOnePieceOfMemory) {
  CUmemGenericAllocationHandle pieces[3] = {};
  for (auto& piece : pieces) ASSERT_EQ(create(&piece), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(0), 0u);
  for (const int i : {0, 2, 1}) EXPECT_EQ(map(i, pieces[i]), CUDA_SUCCESS);
  std::memset(at(0), 7, 3 * kPiece);
  char last = 0;
  // Across all three: the middle of one to the end of another.
  EXPECT_EQ(
      cudaMemcpy(at(0), static_cast<char*>(at(1)) + 5, 2 * kPiece - 5, cudaMemcpyDeviceToDevice),
      cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&last, static_cast<char*>(at(3)) - 1, 1, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(last, 7);
  // Where the middle is gone, what reaches over it is no device's memory.
  EXPECT_EQ(unmap(1), CUDA_SUCCESS);
  EXPECT_NE(cudaMemcpy(at(0), static_cast<char*>(at(2)) - 1, 2, cudaMemcpyDeviceToDevice),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpy(at(0), at(2), kPiece, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(map(1, pieces[1]), CUDA_SUCCESS);
  EXPECT_EQ(cudaMemcpy(&last, at(1), 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(last, 0);  // what was there is gone
  EXPECT_EQ(unmap(0, 3), CUDA_SUCCESS);
  for (const auto piece : pieces) EXPECT_EQ(release_(piece), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryTest, APieceTakesRoomUntilItIsReleasedAndMappedNowhere) {
  CUmemGenericAllocationHandle piece = 0;
  ASSERT_EQ(create(&piece), CUDA_SUCCESS);
  ASSERT_EQ(map(0, piece), CUDA_SUCCESS);
  EXPECT_EQ(release_(piece), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(0), 2 * kPiece);
  EXPECT_EQ(free_bytes(1), 3 * kPiece);
  EXPECT_EQ(unmap(0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(0), 3 * kPiece);
}

TEST_F(VirtualMemoryTest, ADeviceHasNoMorePiecesThanMemory) {
  void* other = nullptr;
  ASSERT_EQ(cudaMalloc(&other, kPiece), cudaSuccess);
  CUmemGenericAllocationHandle pieces[3] = {};
  EXPECT_EQ(create(&pieces[0], 0, 2 * kPiece), CUDA_SUCCESS);
  EXPECT_EQ(create(&pieces[1]), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(create(&pieces[1], 1), CUDA_SUCCESS);
  EXPECT_NE(cudaMalloc(&other, 1), cudaSuccess);
  EXPECT_EQ(release_(pieces[0]), CUDA_SUCCESS);
  EXPECT_EQ(release_(pieces[1]), CUDA_SUCCESS);
  EXPECT_EQ(cudaFree(other), cudaSuccess);
}

TEST_F(VirtualMemoryTest, WhatCannotBeIsRefused) {
  CUmemGenericAllocationHandle piece = 0;
  EXPECT_EQ(create(&piece, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(&piece, 0, kPiece + 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(create(&piece), CUDA_SUCCESS);
  EXPECT_EQ(map(8, piece), CUDA_ERROR_INVALID_VALUE);  // beyond what was reserved
  EXPECT_EQ(map(0, piece + 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(map(0, piece), CUDA_SUCCESS);
  EXPECT_EQ(map(1, piece), CUDA_ERROR_INVALID_VALUE);  // it is mapped already
  EXPECT_EQ(unmap(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(unmap_(base_, kPiece / 2), CUDA_ERROR_INVALID_VALUE);  // a part of it
  EXPECT_EQ(give_back_(base_, 8 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaFree(at(0)), cudaErrorInvalidValue);
  EXPECT_EQ(release_(piece), CUDA_SUCCESS);
  EXPECT_EQ(release_(piece), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(1, piece), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(unmap(0), CUDA_SUCCESS);
}

}  // namespace
}  // namespace ferry::vgpu
