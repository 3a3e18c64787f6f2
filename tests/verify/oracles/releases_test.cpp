#include "verify/oracles/releases.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ferry::verify {
namespace {

using Told = std::vector<Releases::Told>;

constexpr StreamId kCompute{0}, kCopies{1}, kSide{2};

CoreOptions from_the_copy_stream() {
  CoreOptions options;
  options.reload_pool = ReloadPool::kCopyStream;
  return options;
}

class ReleasesTest : public testing::Test {
 protected:
  static TargetRef target() {
    auto made = std::make_shared<Target>();
    made->owner = kCopies;
    return made;
  }
  Told told() { return std::exchange(releases_.told(), {}); }
  void begin_node() { task_.in_node = true; }
  // To a node, which nothing needs it after.
  void hand_out(const TargetRef& target, StreamId to = kCompute) {
    releases_.use(target, to, &task_);
    releases_.let_go(target, &task_);
  }

  Releases releases_{from_the_copy_stream()};
  Releases::Task task_;
};

TEST_F(ReleasesTest, ANodeLate) {
  begin_node();
  hand_out(target());
  EXPECT_EQ(told(), Told{});
  releases_.node_ran(task_);
  EXPECT_EQ(told(), (Told{{Step::kNodeDone, kCompute}}));
  begin_node();
  releases_.node_ran(task_);
  EXPECT_EQ(told(), Told{}) << "a node that was handed nothing tells nothing";
  begin_node();
  hand_out(target(), kSide);
  releases_.node_ran(task_);
  EXPECT_EQ(told(), (Told{{Step::kNodeDone, kSide}, {Step::kReleaseAfterNode, kCopies}}));
  releases_.task_ends(task_);
  releases_.task_ended(task_);
  EXPECT_EQ(told(), (Told{{Step::kReleaseAfterNode, kCopies}}));
}

TEST_F(ReleasesTest, OneRecordForEachStreamOfANode) {
  begin_node();
  const TargetRef x = target();
  releases_.use(x, kCompute, &task_);
  releases_.use(x, kSide, &task_);
  hand_out(x);
  releases_.task_ends(task_);  // the node failed
  EXPECT_EQ(told(), (Told{{Step::kNodeDone, kCompute}, {Step::kNodeDone, kSide}}));
  releases_.task_ended(task_);
  EXPECT_EQ(told(), (Told{{Step::kReleaseAfterNode, kCopies}, {Step::kReleaseAfterNode, kCopies}}));
}

TEST_F(ReleasesTest, WhatIsKeptIsNotReleased) {
  begin_node();
  const TargetRef x = target();
  releases_.use(x, kCompute, &task_);
  releases_.node_ran(task_);
  releases_.task_ends(task_);
  releases_.task_ended(task_);
  EXPECT_EQ(told(), (Told{{Step::kNodeDone, kCompute}}));
  releases_.let_go(x, nullptr);
  EXPECT_EQ(told(), (Told{{Step::kReleaseAfterNode, kCopies}})) << "no task might tell it later";
}

TEST_F(ReleasesTest, WhatEscapedIsToldOfItsStreams) {
  hand_out(target(), kSide);  // in no node
  EXPECT_EQ(told(), (Told{{Step::kEscaped, kSide}}));
}

TEST_F(ReleasesTest, NothingIsToldOfTheConsumersPool) {
  Releases releases{CoreOptions()};
  begin_node();
  releases.use(target(), kCompute, &task_);
  releases.node_ran(task_);
  EXPECT_EQ(releases.told(), Told{});
}

}  // namespace
}  // namespace ferry::verify
