#include "vgpu/runtime/host.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ferry::vgpu {
namespace {

// It says what it was asked to do, and that work is done at the third question.
class Asked final : public Clock {
 public:
  void issue(StreamId, int, const Cost&, const char*) override {}
  void begin_graph(StreamId, int) override {}
  void end_graph() override {}
  void allocated(int, std::int64_t) override {}
  Mark record(StreamId, int) override { return Mark{++marks}; }
  void release(Mark) override { --marks; }
  void wait(StreamId, int, Mark) override {}
  Answer host_asks(Mark) override {
    calls += "asks ";
    return ++questions < 3 ? Answer::kNotReady : Answer::kDone;
  }
  void host_waits(Mark) override { calls += "waits "; }
  void host_waits(StreamId, int) override { calls += "waits for all "; }
  void host_computes(const KernelCost&) override {}
  std::int64_t duration(const Cost&) const override { return 0; }
  std::int64_t run_to_end(Mark) override { return 0; }

  std::string calls;
  int questions = 0;
  std::uint32_t marks = 0;
};

class HostTest : public testing::Test {
 protected:
  void give() {
    schedule_.choose_tempo(stream_);
    schedule_.push(stream_, {.body = [this] { ran_ = true; }});
  }

  Asked clock_;
  Log log_;
  CardTime time_;
  Streams streams_;
  Faults faults_;
  Schedule schedule_{streams_, faults_};
  Host host_{streams_, schedule_, log_, time_};
  Stream& stream_ = *streams_.create(0, false, 0);
  bool ran_ = false;
};

TEST_F(HostTest, ALazyStreamIsNeverDoneForAsking) {
  schedule_.set_tempo(Tempo::kLazy, 0);
  give();
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(host_.ask(stream_), Host::Answer::kNotReady);
  host_.await(stream_);
  EXPECT_TRUE(ran_);
  EXPECT_EQ(host_.ask(stream_), Host::Answer::kDone);
}

TEST_F(HostTest, WhereATempoMightNeverAnswerAHostThatInsistsIsAnswered) {
  schedule_.set_tempo(Tempo::kMainFirst, 0);
  give();
  int asked = 1;
  while (host_.ask(stream_) == Host::Answer::kNotReady) ASSERT_LT(++asked, 5000);
  EXPECT_EQ(asked, 1000);
  EXPECT_TRUE(ran_);
}

TEST_F(HostTest, AClockThatAnswersDecidesWhateverHasRun) {
  time_.set(&clock_, true);
  EXPECT_EQ(host_.ask(stream_), Host::Answer::kNotReady) << "though nothing is queued";
  give();
  EXPECT_EQ(host_.ask(stream_), Host::Answer::kNotReady);
  EXPECT_FALSE(ran_);
  EXPECT_EQ(host_.ask(stream_), Host::Answer::kDone);
  EXPECT_TRUE(ran_);
  EXPECT_EQ(clock_.calls, "asks asks asks waits for all ");
  EXPECT_EQ(clock_.marks, 0u) << "each is released";
}

TEST_F(HostTest, AClockThatDoesNotAnswerIsToldOfWaitsAlone) {
  time_.set(&clock_, false);
  schedule_.set_tempo(Tempo::kLazy, 0);
  give();
  const auto snapshot = std::make_shared<Snapshot>(stream_, time_.clock());
  schedule_.push(stream_, {.fulfil = snapshot});
  EXPECT_EQ(host_.ask(snapshot), Host::Answer::kNotReady);
  host_.await(snapshot);
  EXPECT_EQ(clock_.calls, "waits ");
}

}  // namespace
}  // namespace ferry::vgpu
