#include "vgpu/runtime/pending_free.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::vgpu {
namespace {

constexpr Range kBlock{4096, 512};
constexpr StreamId kSide{1};
constexpr StreamId kOther{2};

// Code of this program stands for that of LibTorch's allocator.
void allocator_code() {}
const void* const kHere = reinterpret_cast<const void*>(&allocator_code);
constexpr std::string_view kLibrary = "test_vgpu_runtime";

StreamOp free_of_the_block() {
  StreamOp op;
  op.kind = StreamOpKind::kFree;
  op.range = kBlock;
  return op;
}

class PendingFreeTest : public testing::Test {
 protected:
  std::vector<std::string> told() {
    pending_.end(tell_);
    return std::exchange(said_, {});
  }
  // The calling thread records an event there: for the block's sake, it says.
  bool records(StreamId stream, const void* caller) {
    const bool is_for_block = pending_.is_for_block(caller);
    if (is_for_block) pending_.add_use(stream);
    return is_for_block;
  }
  // The allocator has the block free: that was told, it says.
  bool completes() {
    pending_.end_of(kBlock, tell_);
    const bool is_told = pending_.is_told(kBlock);
    pending_.forget_told(kBlock);
    return is_told;
  }

  PendingFree pending_;
  std::vector<std::string> said_;

 private:
  std::function<void(const StreamOp&)> tell_ = [this](const StreamOp& op) {
    EXPECT_EQ(op.range.address, kBlock.address);
    said_.push_back(op.kind == StreamOpKind::kFree
                        ? "free"
                        : "used on " + std::to_string(static_cast<std::uint32_t>(op.stream)));
  };
};

TEST_F(PendingFreeTest, WhatIsRecordedForABlockIsItsUses) {
  pending_.begin(free_of_the_block(), kLibrary);
  EXPECT_TRUE(records(kSide, kHere));
  EXPECT_TRUE(records(kOther, kHere));
  EXPECT_EQ(told(), (std::vector<std::string>{"used on 1", "used on 2", "free"}));
  EXPECT_TRUE(told().empty());
  EXPECT_TRUE(completes());
  EXPECT_FALSE(completes()) << "its next life ends as any other";
}

TEST_F(PendingFreeTest, ABlockThatNobodyElseUsedIsFreeWhenTheAllocatorSaysSo) {
  pending_.begin(free_of_the_block(), kLibrary);
  EXPECT_FALSE(completes());
  EXPECT_TRUE(told().empty());
}

TEST_F(PendingFreeTest, AThreadsBlockIsNoOthersAffair) {
  pending_.begin(free_of_the_block(), kLibrary);
  std::thread([&] {
    EXPECT_FALSE(records(kSide, kHere));
    EXPECT_TRUE(told().empty());
  }).join();
  EXPECT_TRUE(records(kSide, kHere));
  std::thread([&] { EXPECT_TRUE(completes()) << "who looks for memory finds it free"; }).join();
  EXPECT_EQ(said_, (std::vector<std::string>{"used on 1", "free"}));
}

TEST_F(PendingFreeTest, WhatTheProgramItselfRecordsIsItsOwn) {
  EXPECT_FALSE(records(kSide, kHere)) << "nothing was freed";
  pending_.begin(free_of_the_block(), "libc10_cuda");
  EXPECT_FALSE(records(kSide, kHere)) << "from elsewhere";
  EXPECT_TRUE(told().empty());
  EXPECT_FALSE(records(kSide, kHere)) << "that is over";
  pending_.learn(kHere);
  pending_.begin(free_of_the_block(), kLibrary);
  EXPECT_FALSE(records(kSide, kHere)) << "who only does it for programs";
}

}  // namespace
}  // namespace ferry::vgpu
