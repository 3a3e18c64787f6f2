#include "vgpu/runtime/streams.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {
namespace {

// The calling thread's default streams are this test's, and no other's.
class StreamsTest : public testing::Test {
 protected:
  ~StreamsTest() override { thread().default_streams = before_; }
  std::vector<StreamId> of_device(int device) {
    std::vector<StreamId> ids;
    streams_.for_each_of(device, [&](const Stream& stream) { ids.push_back(stream.id); });
    return ids;
  }

  Streams streams_;

 private:
  decltype(Thread::default_streams) before_ = std::exchange(thread().default_streams, {});
};

TEST_F(StreamsTest, AreNumberedAfterTheLegacyOnesAndListedByDevice) {
  const Stream* const first = streams_.create(1, true, 0);
  const Stream* const second = streams_.create(1, false, -1);
  EXPECT_EQ(first->id, StreamId{kDevices});
  EXPECT_EQ(of_device(1), (std::vector<StreamId>{StreamId{1}, first->id, second->id}));
  EXPECT_EQ(of_device(0), (std::vector<StreamId>{StreamId{0}}));
}

TEST_F(StreamsTest, AThreadsDefaultStreamIsMadeAtItsFirstUse) {
  EXPECT_EQ(of_device(0).size(), 1u);
  Stream& own = streams_.use(cudaStreamPerThread, 0);
  EXPECT_EQ(of_device(0).size(), 2u);
  EXPECT_EQ(&streams_.use(cudaStreamPerThread, 0), &own);
  EXPECT_TRUE(own.blocking);
  EXPECT_NE(&streams_.use(cudaStreamPerThread, 1), &own);
  EXPECT_EQ(&streams_.use(nullptr, 1), &streams_.legacy(1));
}

TEST_F(StreamsTest, ADestroyedOneIsFoundByItsNumberAlone) {
  Stream& stream = *streams_.create(0, true, 0);
  const StreamId id = stream.id;
  streams_.destroy(stream);
  EXPECT_EQ(of_device(0).size(), 1u);
  ASSERT_EQ(streams_.find(id), &stream);
  EXPECT_TRUE(streams_.is_gone(stream));
  EXPECT_FALSE(streams_.is_gone(streams_.legacy(0)));
  EXPECT_EQ(streams_.find(StreamId{1000}), nullptr);
}

TEST_F(StreamsTest, CountsWhatIsQueued) {
  streams_.legacy(2).queue.emplace_back();
  streams_.create(0, true, 0)->queue.emplace_back();
  EXPECT_EQ(streams_.queued(), 2);
}

}  // namespace
}  // namespace ferry::vgpu
