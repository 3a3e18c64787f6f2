// Each assertion of the way to the host is seen to fail: the window, and who waits for it.
#include "shared/offload/outbound.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "shared/offload/exempt.h"
#include "shared/offload/section.h"
#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

class OutboundInvariants : public ::testing::Test {
 protected:
  using Device = test::Parts::Device;

  void send(const test::Parts::ParcelRef& parcel) {
    HostRoom<Device> room(parts.context.device, parcel->extent.bytes(), HostMemory::kPinned);
    parts.outbound.send(parcel, x->storage, room);
  }
  void forget() {
    Bin<Device> bin;
    parts.outbound.forget(*sent, bin);
  }
  HostWait<Device> wait(Step step) {
    return {step, parts.world.stream(0), sent->offloaded,
            parts.world.machine().lane(Lane::kDeviceToHost), sent};
  }

  test::Parts parts;
  const sim::Tensor x = parts.world.make(test::kBytes);
  const test::Parts::ParcelRef sent = parts.send(x);
};

TEST_F(OutboundInvariants, HostBytesAreOneCopys) {
  HostRoom<Device> room(parts.context.device, test::kBytes, HostMemory::kPinned);
  auto taken = room.take();
  EXPECT_DEATH(room.take(), "host bytes are given to one copy");
  parts.context.device.release_host(Step::kHostReturn, std::move(taken), {});
}

TEST_F(OutboundInvariants, AParcelLeavesOnceAndThenComesBack) {
  EXPECT_DEATH(send(sent), "a parcel is sent once");
  const auto other = parts.parcel_of(x);
  other->reloads.emplace_back(parts.world.stream(0), std::nullopt);
  EXPECT_DEATH(send(other), "nothing comes back before it is sent");
  other->reloads.clear();
  other->sequence = sent->sequence;
  EXPECT_DEATH(send(other), "no two sources have one place in the window");
}

TEST_F(OutboundInvariants, TheWindowKeepsWhatItHas) {
  sent->kept_bytes += 1;
  EXPECT_DEATH(forget(), "no more bytes leave the window than it has");
  sent->kept_bytes -= 2;
  EXPECT_DEATH(parts.evict(), "an empty window has no bytes");
  sent->kept_bytes += 1;
  sent->sequence += 7;
  EXPECT_DEATH(forget(), "a kept source has its place in the window");
  sent->kept = {};
  EXPECT_DEATH(parts.evict(), "a source in the window is kept");
}

TEST_F(OutboundInvariants, AWaitForAnEvictionHasItsSource) {
  Bin<Device> bin;
  EXPECT_DEATH(parts.outbound.waited(wait(Step::kEvict), bin),
               "a source stays until its copy was waited for");
  Device::Mutex mutex;
  Section<Device> section(mutex, parts.context, parts.outbound);
  section.bin.waits.push_back(wait(Step::kConsume));
  EXPECT_DEATH(section.catch_up(),
               "a wait for an eviction has its parcel and no other wait has one");
  section.bin.waits.clear();
}

TEST_F(OutboundInvariants, WhatIsNotThereNeedsNothing) {
  EXPECT_DEATH(parts.context.protect({}, parts.world.stream(0)),
               "only a storage that is there is protected");
  Bin<Device> bin;
  Exempt<Device> exempt(parts.context);
  exempt.add(x, bin);
  EXPECT_DEATH(exempt.has(x, {}, bin), "a tensor without a storage is not asked about");
}

}  // namespace
}  // namespace ferry
