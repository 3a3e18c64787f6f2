// The way to the host on a device that does what the seam allows and the others do not do.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "shared/offload/outbound.h"
#include "tests/shared/offload/odd_device.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::OddDevice;

class OddOutboundTest : public ::testing::Test {
 protected:
  using Ref = std::shared_ptr<Parcel<OddDevice>>;

  void start(CopyStreams streams = CopyStreams::kTwo) {
    CoreOptions options = test::eager_options();
    options.copy_streams = streams;
    context =
        std::make_unique<Context<OddDevice>>(OddDevice(world.device(), odd), options, Rules{});
    outbound = std::make_unique<Outbound<OddDevice>>(*context);
  }
  Ref send(const Tensor& x) {
    const auto parcel = std::make_shared<Parcel<OddDevice>>();
    parcel->sequence = sequence++;
    parcel->extent = {0, x->storage->bytes};
    parcel->packed_on = context->current();
    parcel->key.address = x->storage->address;
    parcel->saves = 1;
    HostRoom<OddDevice> room(context->device, parcel->extent.bytes(), HostMemory::kPinned);
    outbound->send(parcel, x->storage, room);
    return parcel;
  }

  test::World world;
  std::shared_ptr<test::Oddities> odd = std::make_shared<test::Oddities>();
  std::unique_ptr<Context<OddDevice>> context;
  std::unique_ptr<Outbound<OddDevice>> outbound;
  std::uint64_t sequence = 0;
};

TEST_F(OddOutboundTest, OfAParcelThatDiesInTheWindowTheBinHasTheSource) {
  start();
  Tensor x = world.make(kBytes);
  const std::weak_ptr<sim::StorageImpl> source = x->storage;
  const Ref parcel = send(x);
  x.reset();
  {
    Bin<OddDevice> bin;
    outbound->forget(*parcel, bin);
    EXPECT_FALSE(context->device.exists(parcel->kept));
    EXPECT_EQ(bin.storages.size(), 1U);
    EXPECT_FALSE(source.expired()) << "it does not go under the lock";
  }
  EXPECT_TRUE(source.expired());
  outbound->return_host(*parcel);
}

// No stream is known to be ahead of its reuse: it is kept, and its pool waits for both streams.
TEST_F(OddOutboundTest, ASourceOfAnUnknownPoolIsTakenForAnothersOne) {
  odd->pools_unknown = true;
  start(CopyStreams::kNone);
  const Ref parcel = send(world.make(kBytes));
  EXPECT_TRUE(context->device.exists(parcel->kept));
  Bin<OddDevice> bin;
  outbound->evict_old(1, bin);
  EXPECT_FALSE(context->device.exists(parcel->kept));
  EXPECT_EQ(context->statistics.compute_waits, 0);
  outbound->return_host(*parcel);
}

TEST_F(OddOutboundTest, HostBytesThatAParcelTookAreNotReturnedWithTheirRoom) {
  start();
  { HostRoom<OddDevice> room(context->device, kBytes, HostMemory::kPinned); }
  EXPECT_EQ(odd->returned, 1);
  const Ref parcel = send(world.make(kBytes));
  EXPECT_EQ(odd->returned, 1);
  outbound->return_host(*parcel);
  EXPECT_EQ(odd->returned, 2);
}

// The copy may still be at work on them, and nobody can say until when.
TEST_F(OddOutboundTest, HostBytesOfACopyWithoutAnEndAreKeptWhileTheCoreLives) {
  start();
  Ref parcel = send(world.make(kBytes));
  Bin<OddDevice> bin;
  outbound->evict_old(1, bin);
  parcel->reloads.emplace_back(world.machine().lane(Lane::kHostToDevice), std::nullopt);
  odd->fails = Step::kAbandon;
  outbound->return_host(*parcel);
  parcel.reset();
  EXPECT_EQ(odd->returned, 0);
  EXPECT_FALSE(odd->bytes.expired());
  EXPECT_EQ(context->statistics.quarantined, 1);
  outbound.reset();
  EXPECT_TRUE(odd->bytes.expired());
}

}  // namespace
}  // namespace ferry
