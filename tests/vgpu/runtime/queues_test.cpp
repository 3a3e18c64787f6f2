#include "vgpu/runtime/queues.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::vgpu {
namespace {

class Notes final : public Listener {
 public:
  void on(const StreamOp& op) override {
    told.push_back((op.kind == StreamOpKind::kRecord ? "record " : "wait ") +
                   std::to_string(static_cast<std::uint32_t>(op.stream)));
  }
  void forget(Range) override {}
  void destroy_event(EventId) override {}
  std::vector<std::string> told;
};

class QueuesTest : public testing::Test {
 protected:
  QueuesTest() {
    log_.set_listener(&notes_);
    schedule_.set_tempo(Tempo::kLazy, 0);
  }
  void give(Stream& stream, const std::string& name) {
    queues_.enqueue(stream, {.body = [this, name] { ran_ += name; }});
  }

  using Told = std::vector<std::string>;
  Notes notes_;
  Log log_;
  CardTime time_;
  Streams streams_;
  Faults faults_;
  Events events_;
  Schedule schedule_{streams_, faults_};
  Queues queues_{streams_, schedule_, events_, log_, time_};
  Stream& blocking_ = *streams_.create(0, true, 0);   // 8
  Stream& other_ = *streams_.create(0, false, 0);     // 9
  Stream& elsewhere_ = *streams_.create(1, true, 0);  // 10
  std::string ran_;
};

TEST_F(QueuesTest, TheLegacyStreamsWorkFollowsBlockingStreamsAndTheyFollowIt) {
  give(other_, "x");
  give(elsewhere_, "y");
  give(blocking_, "a");
  give(streams_.legacy(0), "b");
  give(blocking_, "c");
  EXPECT_EQ(notes_.told, (Told{"record 8", "wait 0", "record 0", "wait 8"}));
  schedule_.finish(blocking_);
  EXPECT_EQ(ran_, "abc");
}

TEST_F(QueuesTest, ARecordOfTheLegacyStreamJoinsNothing) {
  queues_.record(streams_.legacy(0));
  queues_.wait(streams_.legacy(0), queues_.record(other_));
  EXPECT_EQ(notes_.told, Told{});
}

TEST_F(QueuesTest, AStreamThatIsGoneRunsWhatOthersAreMadeToWaitFor) {
  const StreamId id = other_.id;
  streams_.destroy(other_);
  queues_.order(id, elsewhere_);
  EXPECT_TRUE(other_.queue.empty());
  EXPECT_EQ(notes_.told, (Told{"record 9", "wait 10"}));
  queues_.order(StreamId{1000}, elsewhere_);
  EXPECT_EQ(notes_.told.size(), 2u);
}

}  // namespace
}  // namespace ferry::vgpu
