#include "vgpu/runtime/pinned_memory.h"

#include <gtest/gtest.h>

namespace ferry::vgpu {
namespace {

class PinnedMemoryTest : public testing::Test {
 protected:
  Settings settings_;
  Streams streams_;
  KnownValues values_;
  FreedMemory freed_{streams_};
  PinnedMemory memory_{settings_, freed_, values_};
};

TEST_F(PinnedMemoryTest, WhatIsFreedIsScribbledOverAndThereWhileWorkIsQueued) {
  streams_.legacy(0).queue.emplace_back();
  auto* const bytes = static_cast<unsigned char*>(memory_.allocate(100));
  ASSERT_NE(bytes, nullptr);
  bytes[99] = 1;
  EXPECT_TRUE(memory_.free(bytes));
  EXPECT_EQ(bytes[99], 0xdd);
  EXPECT_FALSE(freed_.is_empty());
  streams_.legacy(0).queue.clear();
  freed_.unmap();
  EXPECT_TRUE(freed_.is_empty());
}

TEST_F(PinnedMemoryTest, ItsBytesAreKnownForAsLongAsTheyAreThere) {
  values_.set(KernelValues::kZeros);
  void* const bytes = memory_.allocate(100);
  const Range range{reinterpret_cast<std::uint64_t>(bytes), 100};
  EXPECT_TRUE(values_.is_known(range));
  EXPECT_TRUE(memory_.free(bytes));
  EXPECT_FALSE(values_.is_known(range));
}

TEST_F(PinnedMemoryTest, CountsWhatIsThereAndItsPeakAndWrongFrees) {
  settings_.pinned_bytes_max = 1000;
  void* const first = memory_.allocate(300);
  void* const second = memory_.allocate(400);
  EXPECT_EQ(memory_.free_bytes(), 300);
  EXPECT_TRUE(memory_.free(first));
  EXPECT_FALSE(memory_.free(first));
  EXPECT_FALSE(memory_.free(static_cast<char*>(second) + 1));
  EXPECT_EQ(freed_.wrong(), 2);
  EXPECT_EQ(memory_.bytes(), 400);
  EXPECT_EQ(memory_.peak(), 700);
  EXPECT_NE(memory_.find(static_cast<char*>(second) + 1, 399), nullptr);
  EXPECT_EQ(memory_.find(second, 401), nullptr);
  EXPECT_TRUE(memory_.free(second));
}

}  // namespace
}  // namespace ferry::vgpu
