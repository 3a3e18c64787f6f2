#include "vgpu/runtime/device_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::vgpu {
namespace {

constexpr std::size_t kPiece = VirtualMemory::kGranularity;

class DeviceMemoryTest : public testing::Test {
 protected:
  void* map(std::size_t at, int device) {
    void* const address = base_ + at * kPiece;
    EXPECT_EQ(virtual_memory_.map(address, kPiece, virtual_memory_.create(kPiece, device)), device);
    memory_.add_mapped(address, kPiece, device);
    return address;
  }

  Settings settings_;
  Streams streams_;
  KnownValues values_;
  Log log_;
  FreedMemory freed_{streams_};
  VirtualMemory virtual_memory_;
  DeviceMemory memory_{settings_, virtual_memory_, freed_, values_, log_};
  char* const base_ = static_cast<char*>(virtual_memory_.reserve(4 * kPiece));
};

TEST_F(DeviceMemoryTest, CountsEachDevicesBytesAndPeaks) {
  settings_.device_bytes_max = 1000;
  settings_.context_bytes = 100;
  void* const first = memory_.allocate(300, 0);
  void* const second = memory_.allocate(200, 1);
  EXPECT_EQ(memory_.free_bytes(0), 600);
  EXPECT_EQ(memory_.bytes(), 500);
  EXPECT_TRUE(memory_.free(first));
  EXPECT_FALSE(memory_.free(first));
  EXPECT_EQ(freed_.wrong(), 1);
  EXPECT_EQ(memory_.bytes(0), 0);
  EXPECT_EQ(memory_.peaks(), (std::vector<std::int64_t>{300, 200}));
  EXPECT_TRUE(memory_.free(second));
}

TEST_F(DeviceMemoryTest, PiecesSideBySideOnOneDeviceAreOneAllocation) {
  void* const first = map(0, 0);
  void* const third = map(2, 0);
  EXPECT_EQ(memory_.find(first, 2 * kPiece), nullptr);
  void* const second = map(1, 0);
  EXPECT_NE(memory_.find(first, 3 * kPiece), nullptr);
  map(3, 1);
  EXPECT_EQ(memory_.find(third, 2 * kPiece), nullptr) << "another device's";
  EXPECT_FALSE(memory_.free(first)) << "it was not allocated";
  memory_.remove_mapped(second, kPiece);
  EXPECT_EQ(memory_.find(second, 1), nullptr);
  EXPECT_NE(memory_.find(first, kPiece), nullptr);
  EXPECT_NE(memory_.find(third, kPiece), nullptr);
}

TEST_F(DeviceMemoryTest, InTheLogHostBytesLieAboveAllDevices) {
  void* const bytes = memory_.allocate(64, 0);
  const auto address = reinterpret_cast<std::uint64_t>(bytes);
  EXPECT_EQ(memory_.range(bytes, 64), (Range{address, 64}));
  const int host = 0;
  EXPECT_GT(memory_.range(&host, 4).address, std::uint64_t{1} << 60);
  EXPECT_TRUE(memory_.free(bytes));
}

}  // namespace
}  // namespace ferry::vgpu
