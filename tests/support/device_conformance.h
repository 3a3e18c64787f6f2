// The contracts of shared/seam/device.h as one suite of tests, typed over a world that has a
// device.
//
// A new device costs a world of about 20 lines and one instantiation:
//
//   struct MyWorld {
//     using D = MyDevice;
//     static constexpr bool kJudgesOrder = ...;  // hazards() sees a missing edge
//     D device();
//     D::Stream stream(int number);        // 0, 1: streams that compute; 0 is current at first
//     void set_current(D::Stream);
//     D::Tensor make(std::vector<std::int64_t> shape);  // 4-byte elements, contents of its own
//     D::Tensor view(const D::Tensor&, Geometry);       // on the same storage
//     void write(const D::Tensor&);        // in place, on the current stream
//     void use(const D::Tensor&);          // reads it there
//     void work();                         // keeps the current stream busy for a while
//     void finish();                       // the host waits for everything
//     auto contents(const D::Tensor&);     // comparable; of the window
//     Geometry geometry(const D::Tensor&); // the offset counted on its storage
//     D::Tensor foreign();                 // of another device
//     std::int64_t too_many_bytes();       // that no allocation can have
//     std::int64_t hazards();
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(My, DeviceContract, MyWorld);
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "shared/seam/device.h"

namespace ferry {

// In elements.
struct Geometry {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  bool operator==(const Geometry&) const = default;
};

template <class W>
class DeviceContract : public ::testing::Test {
 protected:
  using D = typename W::D;
  using Storage = typename D::Storage;
  using Tensor = typename D::Tensor;
  using Event = typename D::Event;

  Storage allocate(std::int64_t bytes, int stream) {
    return device.allocate(Step::kUser, bytes, world.stream(stream));
  }
  std::int64_t use_count(const Tensor& tensor) { return device.use_count(device.storage(tensor)); }

  // Over the host and back, to a storage of the part alone, as a parcel travels.
  Tensor travel(const Tensor& tensor, Extent part) {
    const auto stream = world.stream(0);
    auto host = device.allocate_host(Step::kUser, part.bytes(), HostMemory::kPinned);
    device.offload(Step::kUser, device.storage(tensor), part.begin, host, stream);
    const Storage target = device.allocate(Step::kUser, part.bytes(), stream);
    device.reload(Step::kUser, host, target, stream);
    const Event end = device.record(Step::kUser, stream);
    device.release_host(Step::kUser, std::move(host), {&end, 1});
    return device.restore(target, device.layout(tensor), part.begin, device.version(tensor));
  }
  Extent whole(const Tensor& tensor) { return {0, device.bytes(device.storage(tensor))}; }

  W world;
  D device = world.device();
};

TYPED_TEST_SUITE_P(DeviceContract);

// --- Streams and events

TYPED_TEST_P(DeviceContract, TheCurrentStreamIsTheOneNow) {
  EXPECT_TRUE(this->device.current_stream() == this->world.stream(0));
  this->world.set_current(this->world.stream(1));
  EXPECT_TRUE(this->device.current_stream() == this->world.stream(1));
  this->world.set_current(this->world.stream(0));
  EXPECT_TRUE(this->device.current_stream() == this->world.stream(0));
}

TYPED_TEST_P(DeviceContract, LanesAreStreamsOfTheirOwn) {
  const auto out = this->device.lane(Lane::kDeviceToHost);
  const auto back = this->device.lane(Lane::kHostToDevice);
  EXPECT_FALSE(out == back);
  EXPECT_FALSE(out == this->world.stream(0));
  EXPECT_FALSE(back == this->world.stream(0));
  EXPECT_TRUE(out == this->device.lane(Lane::kDeviceToHost));
}

TYPED_TEST_P(DeviceContract, ACopiedHandleIsTheSameDevice) {
  auto copy = this->device;
  const auto x = this->world.make({256});
  EXPECT_TRUE(copy.on_device(x));
  EXPECT_EQ(copy.identity(copy.storage(x)), this->device.identity(this->device.storage(x)));
  EXPECT_TRUE(copy.lane(Lane::kDeviceToHost) == this->device.lane(Lane::kDeviceToHost));
}

TYPED_TEST_P(DeviceContract, AWaitOrdersWhatTheEventHolds) {
  const auto x = this->world.make({256});
  this->device.wait(Step::kUser, this->world.stream(1),
                    this->device.record(Step::kUser, this->world.stream(0)));
  this->world.set_current(this->world.stream(1));
  this->world.use(x);
  EXPECT_EQ(this->world.hazards(), 0);
}

TYPED_TEST_P(DeviceContract, AnEventIsASnapshot) {
  const auto x = this->world.make({256});
  const auto early = this->device.record(Step::kUser, this->world.stream(0));
  this->world.write(x);
  const auto late = this->device.record(Step::kUser, this->world.stream(0));
  this->device.wait(Step::kUser, this->world.stream(1), early);
  this->world.set_current(this->world.stream(1));
  this->world.use(x);
  const auto found = this->world.hazards();  // elsewhere it depends on which thread is faster
  if (TypeParam::kJudgesOrder) {
    EXPECT_EQ(found, 1) << "the early event holds the later write";
  }
  this->device.wait(Step::kUser, this->world.stream(1), late);
  this->world.write(x);
  EXPECT_EQ(this->world.hazards(), found) << "the late event does not hold the write";
}

TYPED_TEST_P(DeviceContract, AnEventNeverRecordedOrdersNothing) {
  typename TestFixture::Event never;
  EXPECT_NO_THROW(this->device.wait(Step::kUser, this->world.stream(1), never));
  if (!TypeParam::kJudgesOrder) return;
  const auto x = this->world.make({256});
  this->device.wait(Step::kUser, this->world.stream(1), never);
  this->world.set_current(this->world.stream(1));
  this->world.use(x);
  EXPECT_EQ(this->world.hazards(), 1);
}

// --- Storages and their pools

TYPED_TEST_P(DeviceContract, ADefaultStorageIsNone) {
  EXPECT_FALSE(this->device.exists(typename TestFixture::Storage()));
  const auto x = this->allocate(4096, 0);
  EXPECT_TRUE(this->device.exists(x));
  EXPECT_EQ(this->device.bytes(x), 4096);
}

TYPED_TEST_P(DeviceContract, AStorageGoesBackToThePoolOfItsStream) {
  auto x = this->allocate(4096, 0);
  const auto address = this->device.address(x);
  this->world.work();
  x = {};
  const auto elsewhere = this->allocate(4096, 1);
  EXPECT_NE(this->device.address(elsewhere), address);
  const auto again = this->allocate(4096, 0);
  EXPECT_EQ(this->device.address(again), address);
}

TYPED_TEST_P(DeviceContract, RecordUseDefersReuse) {
  auto x = this->allocate(4096, 0);
  const auto address = this->device.address(x);
  this->world.set_current(this->world.stream(1));
  this->world.work();
  this->device.record_use(Step::kUser, x, this->world.stream(1));
  x = {};
  EXPECT_NE(this->device.address(this->allocate(4096, 0)), address);
  this->world.finish();
  std::set<std::uint64_t> given;
  std::vector<typename TestFixture::Storage> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(this->allocate(4096, 0));
    given.insert(this->device.address(held.back()));
  }
  EXPECT_TRUE(given.contains(address)) << "the block is lost";
}

TYPED_TEST_P(DeviceContract, AnIdentityIsNotGivenOutAgainThoughTheAddressIs) {
  auto x = this->allocate(4096, 0);
  const auto identity = this->device.identity(x);
  const auto address = this->device.address(x);
  const auto weak = this->device.weak(x);
  x = {};
  const auto y = this->allocate(4096, 0);
  EXPECT_EQ(this->device.address(y), address) << "the pool did not reuse the block: no test";
  EXPECT_NE(this->device.identity(y), identity);
  EXPECT_FALSE(this->device.exists(this->device.lock(weak)));
}

TYPED_TEST_P(DeviceContract, LockGivesTheLivingStorage) {
  auto x = this->allocate(4096, 0);
  const auto weak = this->device.weak(x);
  const auto locked = this->device.lock(weak);
  ASSERT_TRUE(this->device.exists(locked));
  EXPECT_EQ(this->device.identity(locked), this->device.identity(x));
  x = {};
  EXPECT_TRUE(this->device.exists(this->device.lock(weak))) << "a locked storage lives on";
}

TYPED_TEST_P(DeviceContract, UseCountCountsTensorsAndStorages) {
  auto x = this->world.make({256});
  const auto before = this->use_count(x);
  const auto storage = this->device.storage(x);
  EXPECT_EQ(this->use_count(x), before + 1);
  {
    const auto view = this->world.view(x, {{16}, {1}, 8});
    EXPECT_EQ(this->use_count(x), before + 2);
    const auto weak = this->device.weak(storage);
    EXPECT_EQ(this->use_count(x), before + 2) << "a weak reference is none";
  }
  const auto detached = this->device.detach(x);
  EXPECT_EQ(this->use_count(x), before + 2);
}

TYPED_TEST_P(DeviceContract, TheOwnerIsTheStreamOfThePool) {
  const auto x = this->allocate(4096, 1);
  const auto owner = this->device.owner(x);
  EXPECT_TRUE(!owner || *owner == this->world.stream(1));
}

// --- Host bytes and copies

TYPED_TEST_P(DeviceContract, OffloadAndReloadBringTheContentsBack) {
  const auto x = this->world.make({1024});
  const auto y = this->travel(x, this->whole(x));
  EXPECT_EQ(this->world.contents(y), this->world.contents(x));
  const auto other = this->world.make({1024});
  EXPECT_NE(this->world.contents(other), this->world.contents(x)) << "contents tell nothing";
}

TYPED_TEST_P(DeviceContract, PageableMemoryServesTheSame) {
  const auto x = this->world.make({1024});
  const auto stream = this->world.stream(0);
  auto host = this->device.allocate_host(Step::kUser, 4096, HostMemory::kPageable);
  this->device.offload(Step::kUser, this->device.storage(x), 0, host, stream);
  this->world.write(x);
  const auto target = this->allocate(4096, 0);
  this->device.reload(Step::kUser, host, target, stream);
  const auto old = this->device.restore(target, this->device.layout(x), 0, this->device.version(x));
  EXPECT_NE(this->world.contents(old), this->world.contents(x)) << "copied after the write";
  const auto end = this->device.record(Step::kUser, stream);
  this->device.release_host(Step::kUser, std::move(host), {&end, 1});
}

// Two copies to the host in a row: the second may not write where the first is still read.
TYPED_TEST_P(DeviceContract, HostBytesAreNotGivenOutAgainUnderACopy) {
  const auto x = this->world.make({1 << 18});
  const auto y = this->world.make({1 << 18});
  const auto expected = this->world.contents(x);
  const std::int64_t bytes = std::int64_t{1} << 20;
  const auto out = this->world.stream(0);
  const auto back = this->device.lane(Lane::kHostToDevice);
  auto host = this->device.allocate_host(Step::kUser, bytes, HostMemory::kPinned);
  this->device.offload(Step::kUser, this->device.storage(x), 0, host, out);
  this->device.wait(Step::kUser, back, this->device.record(Step::kUser, out));
  const auto target = this->device.allocate(Step::kUser, bytes, back);
  this->device.reload(Step::kUser, host, target, back);
  const auto end = this->device.record(Step::kUser, back);
  this->device.release_host(Step::kUser, std::move(host), {&end, 1});
  auto next = this->device.allocate_host(Step::kUser, bytes, HostMemory::kPinned);
  this->device.offload(Step::kUser, this->device.storage(y), 0, next, out);
  this->world.finish();
  const auto read =
      this->device.restore(target, this->device.layout(x), 0, this->device.version(x));
  EXPECT_EQ(this->world.contents(read), expected);
  EXPECT_EQ(this->world.hazards(), 0);
  this->device.release_host(Step::kUser, std::move(next), {});
}

TYPED_TEST_P(DeviceContract, ReleasingNoHostBytesIsNothing) {
  typename TestFixture::D::HostBuffer none;
  this->device.release_host(Step::kUser, std::move(none), {});
  auto host = this->device.allocate_host(Step::kUser, 4096, HostMemory::kPinned);
  auto moved = std::move(host);
  this->device.release_host(Step::kUser, std::move(host), {});
  this->device.release_host(Step::kUser, std::move(moved), {});
}

// --- Tensors

TYPED_TEST_P(DeviceContract, AnExtentCoversTheWindowAlone) {
  const auto x = this->world.make({1024});
  const auto extent = [&](const Geometry& geometry) {
    return this->device.extent(this->device.layout(this->world.view(x, geometry)));
  };
  EXPECT_EQ(this->device.extent(this->device.layout(x)), (Extent{0, 4096}));
  EXPECT_EQ(extent({{8}, {1}, 100}), (Extent{400, 432}));
  EXPECT_EQ(extent({{8}, {2}, 0}), (Extent{0, 60}));
  EXPECT_EQ(extent({{4, 8}, {1, 4}, 0}), (Extent{0, 128}));
  EXPECT_EQ(extent({{64, 8}, {0, 1}, 8}), (Extent{32, 64})) << "expanded";
  EXPECT_EQ(extent({{0}, {1}, 8}).bytes(), 0) << "empty";
}

// Views of every kind come back with their values, shape and strides.
TYPED_TEST_P(DeviceContract, RestoreGivesTheSameView) {
  const auto x = this->world.make({2, 16, 8, 4});
  const std::vector<Geometry> views = {
      {{2, 16, 8, 4}, {512, 32, 4, 1}, 0},   // itself
      {{100}, {1}, 37},                      // an offset
      {{16}, {64}, 3},                       // strides
      {{16, 64}, {1, 16}, 0},                // transposed
      {{2, 16, 8, 4}, {512, 1, 64, 16}, 0},  // channels last
      {{64, 8}, {0, 1}, 8},                  // expanded
      {{1}, {1}, 1023},                      // the last element
  };
  for (const Geometry& geometry : views) {
    const auto view = this->world.view(x, geometry);
    const auto back = this->travel(view, this->whole(view));
    EXPECT_EQ(this->world.geometry(back), geometry);
    EXPECT_EQ(this->world.contents(back), this->world.contents(view));
    EXPECT_TRUE(this->device.on_device(back));
  }
}

TYPED_TEST_P(DeviceContract, APartOfAStorageIsRestoredFromItsBegin) {
  const auto x = this->world.make({1024});
  const auto view = this->world.view(x, {{4, 8}, {1, 4}, 300});
  const auto back = this->travel(view, {1024, 2048});
  EXPECT_EQ(this->world.geometry(back), (Geometry{{4, 8}, {1, 4}, 300 - 256}));
  EXPECT_EQ(this->world.contents(back), this->world.contents(view));
  EXPECT_EQ(this->device.extent(this->device.layout(back)), (Extent{176, 304}));
  // And once more, from there.
  const auto twice = this->travel(back, {100, 400});
  EXPECT_EQ(this->world.geometry(twice), (Geometry{{4, 8}, {1, 4}, 300 - 256 - 25}));
  EXPECT_EQ(this->world.contents(twice), this->world.contents(view));
}

TYPED_TEST_P(DeviceContract, AVersionIsSharedByViewsAndDetached) {
  const auto x = this->world.make({256});
  const auto version = this->device.version(x);
  const auto before = this->device.read(version);
  const auto detached = this->device.detach(x);
  const auto view = this->world.view(x, {{16}, {1}, 0});
  EXPECT_EQ(this->device.identity(this->device.version(detached)), this->device.identity(version));
  this->world.write(x);
  EXPECT_GT(this->device.read(version), before);
  EXPECT_EQ(this->device.read(this->device.version(detached)), this->device.read(version));
  const auto middle = this->device.read(version);
  this->world.write(view);
  EXPECT_GT(this->device.read(version), middle);
}

TYPED_TEST_P(DeviceContract, AVersionOutlivesItsTensor) {
  auto x = this->world.make({256});
  const auto version = this->device.version(x);
  this->world.write(x);
  const auto read = this->device.read(version);
  x = this->world.make({256});
  EXPECT_EQ(this->device.read(version), read);
  EXPECT_NE(this->device.identity(this->device.version(x)), this->device.identity(version));
}

TYPED_TEST_P(DeviceContract, ARestoredTensorSharesTheVersionOfTheOriginal) {
  const auto x = this->world.make({256});
  const auto version = this->device.version(x);
  const auto y = this->travel(x, this->whole(x));
  EXPECT_EQ(this->device.identity(this->device.version(y)), this->device.identity(version));
  const auto before = this->device.read(version);
  this->world.write(y);
  EXPECT_GT(this->device.read(version), before);
}

TYPED_TEST_P(DeviceContract, ATensorOfAnotherDeviceIsNotOnThisOne) {
  EXPECT_TRUE(this->device.on_device(this->world.make({16})));
  EXPECT_FALSE(this->device.on_device(this->world.foreign()));
}

// --- Errors

TYPED_TEST_P(DeviceContract, AFailedAllocationLeavesTheDeviceAsItWas) {
  const auto x = this->allocate(4096, 0);
  const auto usage = this->device.host_usage();
  EXPECT_THROW(this->allocate(this->world.too_many_bytes(), 0), std::exception);
  EXPECT_THROW(
      this->device.allocate_host(Step::kUser, this->world.too_many_bytes(), HostMemory::kPinned),
      std::exception);
  EXPECT_EQ(this->device.host_usage().used_bytes, usage.used_bytes);
  EXPECT_EQ(this->device.use_count(x), 1);
  const auto tensor = this->world.make({1024});
  const auto back = this->travel(tensor, this->whole(tensor));
  EXPECT_EQ(this->world.contents(back), this->world.contents(tensor));
}

REGISTER_TYPED_TEST_SUITE_P(DeviceContract, TheCurrentStreamIsTheOneNow, LanesAreStreamsOfTheirOwn,
                            ACopiedHandleIsTheSameDevice, AWaitOrdersWhatTheEventHolds,
                            AnEventIsASnapshot, AnEventNeverRecordedOrdersNothing,
                            ADefaultStorageIsNone, AStorageGoesBackToThePoolOfItsStream,
                            RecordUseDefersReuse, AnIdentityIsNotGivenOutAgainThoughTheAddressIs,
                            LockGivesTheLivingStorage, UseCountCountsTensorsAndStorages,
                            TheOwnerIsTheStreamOfThePool, OffloadAndReloadBringTheContentsBack,
                            PageableMemoryServesTheSame, HostBytesAreNotGivenOutAgainUnderACopy,
                            ReleasingNoHostBytesIsNothing, AnExtentCoversTheWindowAlone,
                            RestoreGivesTheSameView, APartOfAStorageIsRestoredFromItsBegin,
                            AVersionIsSharedByViewsAndDetached, AVersionOutlivesItsTensor,
                            ARestoredTensorSharesTheVersionOfTheOriginal,
                            ATensorOfAnotherDeviceIsNotOnThisOne,
                            AFailedAllocationLeavesTheDeviceAsItWas);

}  // namespace ferry
