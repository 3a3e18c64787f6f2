// What is told of the blocks of LibTorch's pinned allocator, which says nothing under its own lock.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

class Lives final : public Listener {
 public:
  void on(const StreamOp& op) override {
    told.push_back((op.kind == StreamOpKind::kAlloc ? "alloc " : "free ") +
                   std::to_string(op.range.bytes));
  }
  void forget(Range) override {}
  void destroy_event(EventId) override {}
  std::vector<std::string> told;
};

class PinnedBlocksTest : public testing::Test {
 protected:
  PinnedBlocksTest() { set_listener(&lives_); }
  ~PinnedBlocksTest() override { reset(); }

  void note(BlockIs is, std::size_t bytes) { note_pinned_block(is, &block_, bytes); }
  void another_thread_notes(BlockIs is, std::size_t bytes) {
    std::thread([&] { note(is, bytes); }).join();
  }

  using Told = std::vector<std::string>;
  Lives lives_;
  std::uint64_t block_ = 0;
};

TEST_F(PinnedBlocksTest, ALifeEndsWhenTheAllocatorHasTheBlock) {
  note(BlockIs::kGivenOut, 64);
  note(BlockIs::kReturned, 64);
  EXPECT_EQ(lives_.told, (Told{"alloc 64"}));
  note(BlockIs::kFree, 64);
  note(BlockIs::kGivenOut, 32);
  EXPECT_EQ(lives_.told, (Told{"alloc 64", "free 64", "alloc 32"}));
}

TEST_F(PinnedBlocksTest, AnotherThreadMayHaveItBeforeTheWordThatItIsFree) {
  note(BlockIs::kGivenOut, 64);
  note(BlockIs::kReturned, 64);
  another_thread_notes(BlockIs::kGivenOut, 32);
  const Told both = {"alloc 64", "free 64", "alloc 32"};
  EXPECT_EQ(lives_.told, both);
  note(BlockIs::kFree, 64);
  EXPECT_EQ(lives_.told, both) << "the late word";
}

TEST_F(PinnedBlocksTest, AndHaveReturnedItAgain) {
  note(BlockIs::kGivenOut, 64);
  note(BlockIs::kReturned, 64);
  another_thread_notes(BlockIs::kGivenOut, 32);
  another_thread_notes(BlockIs::kReturned, 32);
  note(BlockIs::kFree, 64);
  EXPECT_EQ(lives_.told, (Told{"alloc 64", "free 64", "alloc 32"})) << "that of the life before";
  note(BlockIs::kGivenOut, 16);
  EXPECT_EQ(lives_.told, (Told{"alloc 64", "free 64", "alloc 32", "free 32", "alloc 16"}));
}

}  // namespace
}  // namespace ferry::vgpu
