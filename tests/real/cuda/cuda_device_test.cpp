// What the CUDA device adds to the contract: pools and owners, errors and what they leave, two
// devices, spans, and the end of the process.
#include "real/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "real/cuda/host_pool.h"
#include "tests/real/cuda/world.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;

constexpr std::int64_t kBytes = 4096;

// The text of what `body` throws; empty: nothing.
template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CudaDevices : public testing::Test {
 protected:
  VirtualWorld world{Tempo::kLazy};
  CudaDevice device{CudaDeviceOptions{.index = 0}};
};

TEST_F(CudaDevices, OptionsAreChecked) {
  EXPECT_TRUE(has(error_of([] { CudaDevice({.index = 7}); }), "no CUDA device 7: there are 2"));
  EXPECT_THROW(CudaDevice({.index = 0, .pinned_bytes_max = -1}), ValueError);
  EXPECT_EQ(CudaDevice().index(), 0) << "the current one";
}

TEST_F(CudaDevices, LanesAreNoneThatUsersGet) {
  for (int i = 0; i < 40; ++i) {
    const c10::Stream users = c10::cuda::getStreamFromPool(false, 0).unwrap();
    EXPECT_FALSE(users == device.lane(Lane::kDeviceToHost));
    EXPECT_FALSE(users == device.lane(Lane::kHostToDevice));
  }
}

// --- Owners

TEST_F(CudaDevices, TheOwnerIsKnownOfWhatItAllocatedAndOfLibTorchsOwn) {
  for (const int stream : {0, 1}) {
    const c10::Storage own = device.allocate(Step::kUser, kBytes, world.stream(stream));
    EXPECT_EQ(device.owner(own), world.stream(stream));
    VirtualWorld::set_current(world.stream(stream));
    device.current_stream();  // it has met the stream
    EXPECT_EQ(device.owner(world.empty({1024}).storage()), world.stream(stream));
  }
}

TEST_F(CudaDevices, TheOwnerFollowsTheBlockAndNotItsAddress) {
  c10::Storage first = device.allocate(Step::kUser, kBytes, world.stream(1));
  const std::uint64_t address = CudaDevice::address(first);
  first = {};
  c10::cuda::CUDACachingAllocator::emptyCache();
  const c10::Storage second = device.allocate(Step::kUser, kBytes, world.stream(0));
  ASSERT_EQ(CudaDevice::address(second), address) << "the same place: no test otherwise";
  EXPECT_EQ(device.owner(second), world.stream(0));
}

TEST_F(CudaDevices, NobodyOwnsABlobAndItIsNotOnTheDevice) {
  const at::Tensor tensor = world.make({1024});
  const at::Tensor blob = at::from_blob(tensor.data_ptr(), {16}, tensor.options());
  EXPECT_TRUE(device.on_device(tensor));
  EXPECT_TRUE(device.on_device(tensor.narrow(0, 8, 8)));
  EXPECT_FALSE(device.on_device(blob));
}

TEST_F(CudaDevices, AStorageIsAnOrdinaryOne) {
  const c10::Storage storage = device.allocate(Step::kUser, kBytes, world.stream(0));
  EXPECT_TRUE(storage.resizable());
  EXPECT_EQ(storage.allocator(), c10::cuda::CUDACachingAllocator::get());
  EXPECT_EQ(world.allocated_bytes(), kBytes) << "counted as LibTorch's";
  EXPECT_EQ(CudaDevice::bytes(device.allocate(Step::kUser, 0, world.stream(0))), 0);
}

// --- Errors

TEST_F(CudaDevices, OutOfMemoryIsLibTorchsErrorAndRestoresStreamAndDevice) {
  vgpu::set_device_bytes(vgpu::counts().device_bytes + (1 << 20));
  const std::string text =
      error_of([&] { device.allocate(Step::kUser, std::int64_t{64} << 20, world.stream(1)); });
  EXPECT_TRUE(has(text, "CUDA out of memory. Tried to allocate 64.00 MiB")) << text;
  EXPECT_EQ(device.current_stream(), world.stream(0));
  EXPECT_EQ(c10::cuda::current_device(), 0);
  vgpu::set_device_bytes(std::int64_t{256} << 20);
  EXPECT_NO_THROW(device.allocate(Step::kUser, std::int64_t{64} << 20, world.stream(1)));
}

TEST_F(CudaDevices, EachCallTellsCudasErrorAndWorksAgain) {
  const at::Tensor tensor = world.make({1024});
  const c10::Storage storage = tensor.storage();
  const c10::Stream stream = world.stream(1);
  auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  struct Call {
    const char* entry;
    std::function<void()> make;
  };
  const std::vector<Call> calls = {
      {"cudaEventCreateWithFlags",
       [&] {
         const std::vector<CudaDevice::Event> fresh = {device.record(Step::kUser, stream),
                                                       device.record(Step::kUser, stream)};
       }},
      {"cudaEventRecord", [&] { device.record(Step::kUser, stream); }},
      {"cudaStreamWaitEvent",
       [&] { device.wait(Step::kUser, world.stream(0), device.record(Step::kUser, stream)); }},
      {"cudaMemcpyAsync", [&] { device.offload(Step::kUser, storage, 0, host, stream); }},
      {"cudaMemcpyAsync", [&] { device.reload(Step::kUser, host, storage, stream); }},
      {"cudaHostAlloc", [&] { device.allocate_host(Step::kUser, 64, HostMemory::kPinned); }},
  };
  for (const Call& call : calls) {
    device.trim();
    vgpu::fail(call.entry, 0, cudaErrorIllegalAddress);
    const std::string text = error_of(call.make);
    EXPECT_TRUE(has(text, "an illegal memory access was encountered")) << call.entry << text;
    EXPECT_TRUE(vgpu::failed(call.entry)) << call.entry;
    EXPECT_EQ(error_of(call.make), "") << call.entry;
    EXPECT_EQ(c10::cuda::current_device(), 0);
  }
  const auto end = device.record(Step::kUser, stream);
  device.release_host(Step::kUser, std::move(host), {&end, 1});
}

TEST_F(CudaDevices, ACopyBeyondAStorageIsRefused) {
  const at::Tensor tensor = world.make({1024});
  auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  const c10::Stream stream = world.stream(0);
  EXPECT_THROW(device.offload(Step::kUser, tensor.storage(), 4, host, stream), std::out_of_range);
  EXPECT_THROW(device.offload(Step::kUser, tensor.storage(), -4, host, stream), std::out_of_range);
  const c10::Storage small = device.allocate(Step::kUser, kBytes - 4, stream);
  EXPECT_THROW(device.reload(Step::kUser, host, small, stream), std::out_of_range);
  device.release_host(Step::kUser, std::move(host), {});
}

TEST_F(CudaDevices, AnAsynchronousErrorIsToldByEveryCallAndTheEndIsQuiet) {
  auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  const auto event = device.record(Step::kUser, world.stream(1));
  vgpu::break_device(cudaErrorIllegalAddress);
  EXPECT_TRUE(has(error_of([&] { device.wait(Step::kUser, world.stream(0), event); }),
                  "illegal memory access"));
  EXPECT_TRUE(
      has(error_of([&] { device.record(Step::kUser, world.stream(0)); }), "illegal memory access"));
  device.release_host(Step::kUser, std::move(host), {&event, 1});
  { CudaHostBuffer dropped = std::move(host); }
  EXPECT_EQ(device.statistics().host_in_use_bytes, 0);
  vgpu::break_device(cudaSuccess);
}

// --- Host bytes

TEST_F(CudaDevices, ABufferThatIsDroppedWaitsForTheDevice) {
  const at::Tensor tensor = world.make({1024});
  VirtualWorld::set_current(world.stream(1));
  world.work();
  {
    const auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
    device.offload(Step::kUser, tensor.storage(), 0, host, world.stream(0));
    EXPECT_GT(vgpu::counts().queued, 0);
  }
  EXPECT_EQ(vgpu::counts().queued, 0);
  EXPECT_EQ(device.statistics().host_in_use_bytes, 0);
  EXPECT_EQ(world.hazards(), std::vector<std::string>{});
}

TEST_F(CudaDevices, ABufferThatIsDroppedWhereCudaIsBrokenIsLost) {
  {
    const auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
    vgpu::break_device(cudaErrorIllegalAddress);
  }
  EXPECT_EQ(device.statistics().lost_bytes, kBytes);
  vgpu::break_device(cudaSuccess);
  auto next = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  EXPECT_EQ(device.statistics().host_in_use_bytes, kBytes);
  device.release_host(Step::kUser, std::move(next), {});
}

TEST_F(CudaDevices, TheLimitOnPinnedMemoryHolds) {
  CudaDevice small({.index = 0, .pinned_bytes_max = 2 * kBytes});
  auto host = small.allocate_host(Step::kUser, 2 * kBytes, HostMemory::kPinned);
  EXPECT_THROW(small.allocate_host(Step::kUser, 1, HostMemory::kPinned), OutOfHostMemory);
  auto pageable = small.allocate_host(Step::kUser, kBytes, HostMemory::kPageable);
  small.release_host(Step::kUser, std::move(host), {});
  small.release_host(Step::kUser, std::move(pageable), {});
  EXPECT_EQ(small.statistics().host_in_use_bytes, 0);
}

TEST_F(CudaDevices, HostUsageIsTheMachines) {
  const HostUsage usage = device.host_usage();
  EXPECT_GT(usage.used_bytes, std::int64_t{1} << 20);
  EXPECT_LT(usage.used_bytes, usage.total_bytes);
}

// --- Several devices

class TwoDevices : public testing::Test {
 protected:
  VirtualWorld world{Tempo::kLazy, 0, 1};
  CudaDevice second{CudaDeviceOptions{.index = 1}};
};

TEST_F(TwoDevices, AHandleServesItsOwnWhicheverIsCurrent) {
  const CudaDevice first({.index = 0});
  const at::Tensor tensor = world.make({1024});
  const auto expected = world.last_values();
  EXPECT_TRUE(second.on_device(tensor));
  EXPECT_FALSE(CudaDevice(first).on_device(tensor));
  const c10::cuda::CUDAGuard other(0);
  EXPECT_EQ(second.current_stream(), world.stream(0));
  const c10::Stream lane = second.lane(Lane::kDeviceToHost);
  second.wait(Step::kUser, lane, second.record(Step::kUser, world.stream(0)));
  auto host = second.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  second.offload(Step::kUser, tensor.storage(), 0, host, lane);
  const c10::Storage target = second.allocate(Step::kUser, kBytes, lane);
  second.reload(Step::kUser, host, target, lane);
  const auto end = second.record(Step::kUser, lane);
  second.release_host(Step::kUser, std::move(host), {&end, 1});
  EXPECT_EQ(c10::cuda::current_device(), 0) << "as it was";
  EXPECT_EQ(target.device().index(), 1);
  EXPECT_EQ(second.owner(target), lane);
  const at::Tensor back =
      CudaDevice::restore(target, CudaDevice::layout(tensor), 0, CudaDevice::version(tensor));
  EXPECT_EQ(world.contents(back), expected);
  EXPECT_EQ(world.hazards(), std::vector<std::string>{});
}

TEST_F(TwoDevices, AnEventOfOneIsAwaitedByTheOther) {
  CudaDevice first({.index = 0});
  const at::Tensor tensor = world.make({1024});
  const c10::Stream here = first.current_stream();
  first.wait(Step::kUser, here, second.record(Step::kUser, world.stream(0)));
  EXPECT_GT(vgpu::counts().queued, 0);
  { const auto host = first.allocate_host(Step::kUser, 1, HostMemory::kPinned); }
  EXPECT_EQ(vgpu::counts().queued, 0) << "the wait for one device ran the other's work";
}

// --- Spans

TEST_F(CudaDevices, SpansAreToldWhenTheirCopiesAreDone) {
  std::vector<Span> spans;
  device.set_observer([&](const Span& span) { spans.push_back(span); });
  const at::Tensor tensor = world.make({1024});
  const c10::Stream lane = device.lane(Lane::kDeviceToHost);
  auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  device.wait(Step::kUser, lane, device.record(Step::kUser, world.stream(0)));
  device.offload(Step::kOffload, tensor.storage(), 0, host, lane);
  device.reload(Step::kReload, host, tensor.storage(), lane);
  EXPECT_TRUE(spans.empty()) << "nothing has run";
  device.flush_spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].step, Step::kOffload);
  EXPECT_EQ(spans[0].lane, Lane::kDeviceToHost);
  EXPECT_EQ(spans[0].bytes, kBytes);
  EXPECT_EQ(spans[1].lane, Lane::kHostToDevice);
  EXPECT_LT(spans[0].begin_ns, spans[0].end_ns);
  EXPECT_LE(spans[0].end_ns, spans[1].begin_ns);
  device.offload(Step::kOffload, tensor.storage(), 0, host, lane);
  world.finish();
  const auto end = device.record(Step::kUser, lane);
  device.release_host(Step::kUser, std::move(host), {&end, 1});
  EXPECT_EQ(spans.size(), 3u) << "told by the next call";
  device.set_observer(nullptr);
  device.flush_spans();
  EXPECT_EQ(spans.size(), 3u);
}

TEST_F(CudaDevices, ASpanThatCannotBeMeasuredDoesNotHarmTheCopy) {
  std::int64_t spans = 0;
  device.set_observer([&](const Span&) { ++spans; });
  const at::Tensor tensor = world.make({1024});
  auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
  for (std::int64_t nth = 0; nth < 2; ++nth) {
    vgpu::fail("cudaEventRecord", nth, cudaErrorLaunchFailure);
    EXPECT_NO_THROW(device.offload(Step::kOffload, tensor.storage(), 0, host, world.stream(0)));
  }
  device.flush_spans();
  EXPECT_EQ(spans, 0);
  world.finish();
  device.release_host(Step::kUser, std::move(host), {});
}

// --- Threads, and the end

TEST_F(CudaDevices, ThreadsMayShareIt) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      const c10::Stream lane = device.lane(i % 2 == 0 ? Lane::kDeviceToHost : Lane::kHostToDevice);
      for (int round = 0; round < 200; ++round) {
        const c10::Storage storage = device.allocate(Step::kUser, kBytes, lane);
        auto host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
        device.offload(Step::kUser, storage, 0, host, lane);
        const auto end = device.record(Step::kUser, lane);
        device.wait(Step::kUser, world.stream(1), end);
        device.release_host(Step::kUser, std::move(host), {&end, 1});
        device.owner(storage);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  world.finish();
  device.trim();
  EXPECT_EQ(device.statistics().events_live, 0);
  EXPECT_EQ(device.statistics().pinned_bytes, 0);
}

// A handle, a copy under way and host bytes in statics that outlive the CUDA runtime.
TEST(CudaDeviceDeathTest, TheEndOfTheProcessLeaksAndDoesNotCrash) {
  EXPECT_EXIT(
      {
        struct Left {
          CudaDevice device{CudaDeviceOptions{.index = 0}};
          c10::Storage storage =
              device.allocate(Step::kUser, kBytes, device.lane(Lane::kDeviceToHost));
          CudaHostBuffer host = device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
          CudaDevice::Event event;
        };
        static Left left;
        vgpu::set_tempo(Tempo::kLazy, 0);
        left.device.offload(Step::kUser, left.storage, 0, left.host,
                            left.device.lane(Lane::kDeviceToHost));
        left.event = left.device.record(Step::kUser, left.device.lane(Lane::kDeviceToHost));
        auto freed = left.device.allocate_host(Step::kUser, kBytes, HostMemory::kPinned);
        left.device.release_host(Step::kUser, std::move(freed), {&left.event, 1});
        vgpu::break_device(cudaErrorCudartUnloading);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferry::real
