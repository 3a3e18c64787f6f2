#include "vgpu/runtime/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {
namespace {

constexpr Range kBlock{4096, 512};

class Notes final : public Listener {
 public:
  void on(const StreamOp& op) override { ops.push_back(op); }
  void forget(Range range) override { forgotten += range.bytes; }
  void destroy_event(EventId) override { ++destroyed; }
  std::vector<StreamOp> ops;
  std::uint64_t forgotten = 0;
  int destroyed = 0;
};

class LogTest : public testing::Test {
 protected:
  LogTest() { log_.set_listener(&notes_); }
  ~LogTest() override { thread().step = Step::kUser; }

  static StreamOp op_of(StreamOpKind kind) {
    StreamOp op;
    op.kind = kind;
    op.range = kBlock;
    return op;
  }
  std::vector<StreamOpKind> told() const {
    std::vector<StreamOpKind> kinds;
    for (const StreamOp& op : notes_.ops) kinds.push_back(op.kind);
    return kinds;
  }

  using Kinds = std::vector<StreamOpKind>;
  Notes notes_;
  Log log_;
};

TEST_F(LogTest, AnOperationIsOfTheStepThatTheThreadIsIn) {
  constexpr Step step = Step::kProduced;
  log_.tell_sync(StreamId{3});
  thread().step = step;
  log_.tell_sync(StreamId{3});
  ASSERT_EQ(notes_.ops.size(), 2u);
  EXPECT_EQ(notes_.ops[0].step, Step::kUser);
  EXPECT_EQ(notes_.ops[1].step, step);
  EXPECT_EQ(notes_.ops[1].stream, StreamId{3});
}

TEST_F(LogTest, AFreeIsToldWhenTheAllocatorHasTheBlock) {
  log_.begin_free(op_of(StreamOpKind::kFree), "nowhere");
  log_.tell_sync(StreamId{});
  EXPECT_EQ(told(), (Kinds{StreamOpKind::kStreamSync}));
  log_.tell_free(op_of(StreamOpKind::kFree));
  EXPECT_EQ(told(), (Kinds{StreamOpKind::kStreamSync, StreamOpKind::kFree}));
}

TEST_F(LogTest, OneOfABlockInUseComesBeforeWhatFollowsAndIsToldOnce) {
  log_.begin_free(op_of(StreamOpKind::kFree), "nowhere");
  log_.add_use(StreamId{1});
  log_.tell_sync(StreamId{});
  const Kinds all{StreamOpKind::kRecordUse, StreamOpKind::kFree, StreamOpKind::kStreamSync};
  EXPECT_EQ(told(), all);
  log_.tell_free(op_of(StreamOpKind::kFree));
  EXPECT_EQ(told(), all);
}

TEST_F(LogTest, APinnedFreeIsItsThreadsToEnd) {
  const std::uint64_t address = kBlock.address;
  log_.begin_pinned_free(op_of(StreamOpKind::kFree));
  EXPECT_TRUE(log_.began_pinned_free(address));
  std::thread([&] { EXPECT_FALSE(log_.began_pinned_free(address)); }).join();
  EXPECT_EQ(told(), Kinds{});
  log_.end_pinned_free(address);
  EXPECT_FALSE(log_.began_pinned_free(address));
  log_.end_pinned_free(address);
  EXPECT_EQ(told(), (Kinds{StreamOpKind::kFree}));
}

TEST_F(LogTest, WithoutAListenerNothingIsToldAndNothingFails) {
  log_.set_listener(nullptr);
  log_.tell_sync(StreamId{});
  log_.forget(kBlock);
  log_.destroy_event(EventId{});
  log_.set_listener(&notes_);
  log_.forget(kBlock);
  log_.destroy_event(EventId{});
  EXPECT_EQ(told(), Kinds{});
  EXPECT_EQ(notes_.forgotten, kBlock.bytes);
  EXPECT_EQ(notes_.destroyed, 1);
}

}  // namespace
}  // namespace ferry::vgpu
