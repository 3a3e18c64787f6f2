// The ways out and back where what computes is a thread of the host: what it is left to wait for.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shared/adaptors/observed.h"
#include "shared/offload/inbound.h"
#include "shared/offload/outbound.h"
#include "tests/shared/offload/meddled.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::Meddled;

class HostPartsTest : public ::testing::Test {
 protected:
  using Device = Counted<Meddled>;
  using Ref = std::shared_ptr<Parcel<Device>>;

  HostPartsTest() { meddling->host_computes = true; }
  void start(CopyStreams streams) {
    CoreOptions options = test::eager_options();
    options.copy_streams = streams;
    context = std::make_unique<Context<Device>>(Device(Meddled(world.device(), meddling), calls),
                                                options, Rules{});
    outbound = std::make_unique<Outbound<Device>>(*context);
    inbound = std::make_unique<Inbound<Device>>(*context, tracker);
  }
  // A parcel of the whole tensor, with one save.
  Ref send(const Tensor& x) {
    const auto parcel = std::make_shared<Parcel<Device>>();
    parcel->sequence = sequence++;
    parcel->extent = {0, x->storage->bytes};
    parcel->packed_on = context->current();
    parcel->key.address = x->storage->address;
    parcel->saves = 1;
    HostRoom<Device> room(context->device, parcel->extent.bytes(), HostMemory::kPinned);
    outbound->send(parcel, x->storage, room);
    return parcel;
  }
  std::int64_t protects() const { return calls->of(Step::kAbandon).calls; }

  test::World world;
  std::shared_ptr<test::Meddling> meddling = std::make_shared<test::Meddling>();
  std::shared_ptr<CallCount> calls = std::make_shared<CallCount>();
  std::unique_ptr<Context<Device>> context;
  Tracker<Device> tracker;
  std::unique_ptr<Outbound<Device>> outbound;
  std::unique_ptr<Inbound<Device>> inbound;
  std::uint64_t sequence = 0;
};

TEST_F(HostPartsTest, TheThreadWaitsForEachSourceOfItsOwnPoolAndKeepsItMeanwhile) {
  start(CopyStreams::kTwo);
  Tensor own = world.make(kBytes), others = world.make(kBytes);
  const sim::Storage source = own->storage, foreign = others->storage;
  const Ref first = send(own);
  world.machine().set_current_stream(world.stream(1));
  const Ref second = send(others);
  Bin<Device> bin;
  outbound->evict_old(2, bin);
  ASSERT_EQ(bin.waits.size(), 1U);
  EXPECT_EQ(bin.waits[0].evicted, first);
  EXPECT_EQ(bin.waits[0].storage, source);
  EXPECT_EQ(bin.storages, std::vector{foreign}) << "that one's pool waits by itself";
  EXPECT_EQ(protects(), 2) << "for the copy and for the stream that packed it";
}

// The last save died while the thread was waiting, and the wait failed: nobody will try again.
TEST_F(HostPartsTest, ASourceThatNobodyNeedsIsNotPutBackAfterAFailedWait) {
  start(CopyStreams::kTwo);
  Tensor x = world.make(kBytes);
  const sim::Storage source = x->storage;
  const Ref parcel = send(x);
  Bin<Device> evicting, bin;
  outbound->evict_old(1, evicting);
  ASSERT_EQ(evicting.waits.size(), 1U);
  evicting.waits[0].failed = true;
  parcel->saves = 0;
  outbound->waited(std::move(evicting.waits[0]), bin);
  EXPECT_TRUE(outbound->empty());
  EXPECT_EQ(context->statistics.forward_stash_bytes, 0);
  EXPECT_EQ(protects(), 1) << "the copy may still be reading it";
  EXPECT_EQ(bin.storages, std::vector{source});
}

TEST_F(HostPartsTest, ASourceGoesWithTheBinAfterItsWait) {
  start(CopyStreams::kTwo);
  Tensor x = world.make(kBytes);
  const sim::Storage source = x->storage;
  const Ref parcel = send(x);
  Bin<Device> evicting, bin;
  outbound->evict_old(1, evicting);
  ASSERT_EQ(evicting.waits.size(), 1U);
  outbound->waited(std::move(evicting.waits[0]), bin);
  EXPECT_EQ(protects(), 0);
  EXPECT_EQ(bin.storages, std::vector{source});
}

TEST_F(HostPartsTest, AThreadThatCopiesByItselfWaitsForNoReload) {
  for (const bool beside : {false, true}) {
    start(beside ? CopyStreams::kTwo : CopyStreams::kNone);
    const Ref parcel = send(world.make(kBytes));
    Bin<Device> bin;
    inbound->bring(*parcel, context->current(), bin);
    EXPECT_EQ(bin.waits.size(), beside ? 1U : 0U);
    EXPECT_EQ(context->statistics.compute_waits, beside ? 1 : 0);
  }
}

}  // namespace
}  // namespace ferry
