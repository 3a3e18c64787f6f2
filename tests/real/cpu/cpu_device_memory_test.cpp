// Where bytes live: the pools of worker streams, storages dropped while in use, the host tier, and
// the copies' times.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/real/cpu/cpu_world.h"

namespace ferry::real {
namespace {

class CpuMemory : public ::testing::Test {
 protected:
  CpuMemory() { use({}); }
  void use(CpuDeviceOptions options) {
    device = std::make_unique<CpuDevice>(with_pace(std::make_shared<LazyPace>(), options));
    stream = device->new_stream("x");
    out = device->lane(Lane::kDeviceToHost);
  }
  void busy(const CpuStream& on) {
    device->enqueue(on, [] {});
  }
  CpuDevice::HostBuffer host(std::int64_t bytes) {
    return device->allocate_host(Step::kUser, bytes, HostMemory::kPageable);
  }
  // Reads nothing, but its event is open until somebody waits.
  CpuEvent pending() {
    busy(out);
    return device->record(Step::kUser, out);
  }

  std::unique_ptr<CpuDevice> device;
  CpuStream stream, out;
};

TEST_F(CpuMemory, AnOrdinaryTensorIsTheInlineStreams) {
  const at::Tensor x = at::empty({16});
  EXPECT_EQ(device->owner(x.storage()), CpuStream());
  const at::Tensor y = make_on(*device, stream, {16});
  EXPECT_EQ(device->owner(y.storage()), stream);
  device->record_use(Step::kUser, y.storage(), out);
  EXPECT_EQ(device->owner(y.storage()), stream) << "in use elsewhere, but still of its pool";
}

TEST_F(CpuMemory, RecordUseChangesNothingThatCanBeSeen) {
  const at::Tensor x = at::arange(100);
  const auto count = x.storage().use_count();
  const void* const data = x.data_ptr();
  for (int i = 0; i < 3; ++i) device->record_use(Step::kUser, x.storage(), out);
  EXPECT_EQ(x.storage().use_count(), count);
  EXPECT_EQ(x.data_ptr(), data);
  EXPECT_EQ(x.storage().nbytes(), 800U);
  EXPECT_TRUE(device->on_device(x));
  at::Tensor grown = x;
  grown.resize_({1000});
  EXPECT_EQ(grown[99].item<std::int64_t>(), 99);
}

std::atomic<int> freed = 0;
std::atomic<std::thread::id> freed_on;

at::Tensor foreign() {
  auto* memory = new std::vector<float>(64);
  return at::from_blob(memory->data(), {64}, [memory](void*) {
    delete memory;
    freed_on = std::this_thread::get_id();
    ++freed;
  });
}

// Anybody's storage is kept while a stream uses it; its deleter runs on a thread that nobody's lock
// waits for.
TEST_F(CpuMemory, AForeignStorageIsDeferred) {
  freed = 0;
  at::Tensor x = foreign();
  const auto weak = x.storage().getWeakStorageImpl();
  busy(out);
  device->record_use(Step::kUser, x.storage(), out);
  x = at::Tensor();
  EXPECT_FALSE(device->exists(device->lock(weak))) << "it is dead to all others";
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(device->usage().deferred_blocks, 1);
  device->finish();
  EXPECT_EQ(freed, 1);
  EXPECT_NE(freed_on, std::this_thread::get_id());
  EXPECT_EQ(device->usage().deferred_blocks, 0);
}

TEST_F(CpuMemory, AStorageWhoseUsersAreDoneGoesAtOnce) {
  freed = 0;
  at::Tensor x = foreign();
  busy(out);
  device->record_use(Step::kUser, x.storage(), out);
  device->record_use(Step::kUser, x.storage(), CpuStream());
  device->finish();
  x = at::Tensor();
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(freed_on, std::this_thread::get_id());
}

TEST_F(CpuMemory, TwoDevicesMayUseAStorage) {
  freed = 0;
  CpuDevice second(with_pace(std::make_shared<LazyPace>()));
  const CpuStream back = second.lane(Lane::kHostToDevice);
  at::Tensor x = foreign();
  busy(out);
  second.enqueue(back, [] {});
  device->record_use(Step::kUser, x.storage(), out);
  second.record_use(Step::kUser, x.storage(), back);
  device->record_use(Step::kUser, x.storage(), out);
  x = at::Tensor();
  device->finish();
  EXPECT_EQ(freed, 0) << "the second uses it";
  second.finish();
  device->finish();
  EXPECT_EQ(freed, 1);
  EXPECT_THROW(device->record_use(Step::kUser, foreign().storage(), back), std::logic_error);
}

// Dropped with work on its stream, and its device dropped after it: nobody waits, and all goes.
TEST_F(CpuMemory, ADeferredBlockDoesNotHoldItsDevice) {
  at::Tensor x = make_on(*device, stream, {1000});
  freed = 0;
  at::Tensor y = foreign();
  busy(out);
  device->record_use(Step::kUser, x.storage(), out);
  device->record_use(Step::kUser, y.storage(), out);
  x = at::Tensor();
  y = at::Tensor();
  EXPECT_EQ(device->usage().deferred_blocks, 2);
  device.reset();
  EXPECT_EQ(freed, 1);
}

TEST_F(CpuMemory, APoolKeepsNoMoreThanItsBound) {
  use({.pool_cache_bytes_max = 8192});
  std::vector<at::Tensor> several;
  for (int i = 0; i < 8; ++i) several.push_back(make_on(*device, stream, {1024}));
  EXPECT_EQ(device->usage().pool_bytes, 8 * 4096);
  busy(stream);
  several.clear();
  EXPECT_EQ(device->usage().pool_cached_bytes, 8 * 4096) << "the stream may still use them";
  device->finish();
  EXPECT_EQ(device->usage().pool_cached_bytes, 8192);
  EXPECT_EQ(device->usage().pool_bytes, 0);
}

TEST_F(CpuMemory, HostBytesAreKeptForTheNextBufferOfTheSize) {
  use({.host_cache_bytes_max = 8192});
  auto first = host(4096);
  auto second = host(4096);
  EXPECT_EQ(device->usage().host_bytes, 8192);
  EXPECT_EQ(device->host_usage().used_bytes, 8192);
  const CpuEvent end = pending();
  device->release_host(Step::kUser, std::move(first), {&end, 1});
  EXPECT_EQ(device->usage().host_bytes, 8192) << "its event is not done";
  device->finish();
  EXPECT_EQ(device->usage().host_bytes, 4096);
  EXPECT_EQ(device->usage().host_cached_bytes, 4096);
  const auto third = host(4000);
  EXPECT_EQ(device->usage().host_cached_bytes, 0) << "rounded to the same size";
}

// Whether a buffer fits is no matter of timing: the tier waits for what is to come back.
TEST_F(CpuMemory, AFullHostTierWaitsForWhatIsOnItsWayBack) {
  use({.host_bytes_max = 8192});
  auto first = host(8192);
  const CpuEvent end = pending();
  device->release_host(Step::kUser, std::move(first), {&end, 1});
  auto second = host(4096);  // of another size: the first one's memory has to go
  EXPECT_EQ(device->usage().host_bytes, 4096);
  EXPECT_THROW(host(8192), OutOfHostMemory);
  EXPECT_NO_THROW(host(4096));
}

TEST_F(CpuMemory, AFullDiskWaitsForWhatIsOnItsWayBack) {
  CpuDeviceOptions options = on_disk();
  options.disk->bytes_max = 8192;
  use(options);
  auto first = host(8192);
  const CpuEvent end = pending();
  device->release_host(Step::kUser, std::move(first), {&end, 1});
  const auto second = host(4096);
  EXPECT_EQ(device->host_usage().used_bytes, 4096);
  EXPECT_EQ(device->host_usage().total_bytes, 8192);
  EXPECT_THROW(host(8192), DiskFull);
}

TEST_F(CpuMemory, AHostBufferThatDiesGoesBackAfterTheWorkersWork) {
  {
    const auto buffer = host(4096);
    busy(out);
  }
  EXPECT_EQ(device->usage().host_bytes, 4096);
  device->finish();
  EXPECT_EQ(device->usage().host_bytes, 0);
}

// Each size finds its own among many, and what was returned first goes first.
TEST_F(CpuMemory, HostBytesOfManySizesAreFoundByTheirs) {
  constexpr std::int64_t kSizes = 200;
  use({.host_cache_bytes_max = kSizes * kSizes / 4 * 4096});  // half of them
  std::vector<CpuDevice::HostBuffer> buffers;
  for (std::int64_t i = kSizes; i > 0; --i) buffers.push_back(host(i * 4096));
  std::vector<std::uint64_t> addresses;
  for (auto& buffer : buffers) {
    addresses.push_back(buffer.address());
    device->release_host(Step::kUser, std::move(buffer), {});
  }
  std::vector<CpuDevice::HostBuffer> again;
  std::int64_t found = 0;
  for (std::int64_t i = kSizes; i > 0; --i) {
    const std::int64_t cached = device->usage().host_cached_bytes;
    again.push_back(host(i * 4096));
    if (device->usage().host_cached_bytes == cached) continue;
    EXPECT_EQ(again.back().address(), addresses[static_cast<std::size_t>(kSizes - i)]);
    ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, kSizes);
  EXPECT_EQ(device->usage().host_cached_bytes, 0);
}

// A program may resize a storage under its copy, or give it other memory. The copy reads on what
// it was given, which goes when it is done. (With a sanitizer the read itself would fail.)
TEST_F(CpuMemory, WhatIsCopiedStaysWhereItIsToTheCopysEnd) {
  freed = 0;
  at::Tensor x = foreign();
  x.fill_(7);
  auto buffer = host(256);
  device->offload(Step::kOffload, x.storage(), 0, buffer, out);
  auto other = at::empty({64});
  x.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(256));
  EXPECT_EQ(freed, 0);
  x.fill_(8);
  device->reload(Step::kReload, buffer, other.storage(), out);
  device->wait(Step::kUser, CpuStream(), device->record(Step::kUser, out));
  EXPECT_TRUE(other.equal(at::full({64}, 7)));
  device->finish();
  EXPECT_EQ(freed, 1);
}

// One that is dropped goes at once all the same: who drops it has ordered that after the copy.
TEST_F(CpuMemory, ACopyDoesNotKeepAStorageThatIsDropped) {
  freed = 0;
  at::Tensor x = foreign();
  auto buffer = host(256);
  device->offload(Step::kOffload, x.storage(), 0, buffer, out);
  device->wait(Step::kUser, CpuStream(), device->record(Step::kUser, out));
  x.reset();
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(device->usage().deferred_blocks, 0);
}

TEST_F(CpuMemory, ACopyStaysInItsStorage) {
  const at::Tensor x = at::zeros({256});
  auto buffer = host(1024);
  EXPECT_THROW(device->offload(Step::kUser, x.storage(), 4, buffer, out), c10::Error);
  EXPECT_THROW(device->offload(Step::kUser, x.storage(), -4, buffer, out), c10::Error);
  const at::Tensor small = at::zeros({255});
  EXPECT_THROW(device->reload(Step::kUser, buffer, small.storage(), out), c10::Error);
  EXPECT_EQ(device->usage().tasks, 0);
}

// The observer knows of a copy by the time a wait for it returns.
TEST_F(CpuMemory, CopiesAreTold) {
  std::vector<Span> spans;
  device->set_observer([&](const Span& span) { spans.push_back(span); });
  const at::Tensor x = at::zeros({256});
  const auto buffer = host(1024);
  device->offload(Step::kOffload, x.storage(), 0, buffer, out);
  EXPECT_TRUE(spans.empty());
  device->wait(Step::kUser, CpuStream(), device->record(Step::kUser, out));
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].step, Step::kOffload);
  EXPECT_EQ(spans[0].lane, Lane::kDeviceToHost);
  EXPECT_EQ(spans[0].bytes, 1024);
  EXPECT_LE(spans[0].begin_ns, spans[0].end_ns);
  device->reload(Step::kReload, buffer, x.storage(), CpuStream());
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].lane, Lane::kHostToDevice);
  device->set_observer(nullptr);
  device->reload(Step::kReload, buffer, x.storage(), CpuStream());
  EXPECT_EQ(spans.size(), 2U);
}

}  // namespace
}  // namespace ferry::real
