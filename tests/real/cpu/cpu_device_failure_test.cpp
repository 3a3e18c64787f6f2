// What goes wrong below the core reaches the caller with its cause, and the next step works.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/offload/offloader.h"
#include "tests/real/cpu/cpu_world.h"
#include "tests/real/disk/bent_io.h"
#include "tests/real/script.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kElements = 4096;  // 16 KiB: four blocks of the disk
using Save = std::unique_ptr<Saved<at::Tensor>>;

// Flips a bit of what is read next.
class FlippingIo final : public DiskIo {
 public:
  ssize_t read_at(int file, void* to, std::int64_t bytes, std::int64_t offset) override {
    const ssize_t done = DiskIo::read_at(file, to, bytes, offset);
    if (done > 0 && flips > 0) {
      --flips;
      static_cast<char*>(to)[done / 2] ^= 4;
    }
    return done;
  }
  int flips = 0;
};

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// An offloader on the inline stream, at the latest pace: sources leave at the next pack.
class CpuFailure : public ::testing::TestWithParam<CopyStreams> {
 protected:
  void use(CpuDeviceOptions options) {
    options.pace = std::make_shared<LazyPace>();
    device = std::make_unique<CpuDevice>(std::move(options));
    CoreOptions core;
    core.window_tensors = 1;
    core.prefetch_bytes = 0;
    core.copy_streams = GetParam();
    offloader = std::make_unique<Offloader<CpuDevice, ScriptAutograd>>(
        *device, ScriptAutograd(script), core);
  }
  Save pack(std::int32_t number) {
    const at::Tensor x = at::full({kElements}, number, at::kInt);
    return offloader->hooks()->pack(x);
  }
  void evict() { offloader->hooks()->pack(at::empty({1}, at::kInt)); }
  void backward(const Save& save, std::int32_t number) {
    script.backward([&] {
      script.node([&] {
        const at::Tensor x = save->unpack();
        EXPECT_TRUE(at::equal(x, at::full({kElements}, number, at::kInt)));
      });
    });
  }
  void expect_a_step_to_work() {
    const Save save = pack(7);
    evict();
    backward(save, 7);
  }
  void expect_nothing_left() {
    device->finish();
    const CpuDeviceUsage usage = device->usage();
    EXPECT_TRUE(offloader->empty());
    EXPECT_EQ(usage.host_bytes, 0);
    EXPECT_EQ(usage.pool_bytes, 0);
    EXPECT_EQ(usage.deferred_blocks, 0);
    EXPECT_EQ(usage.tasks, 0);
    EXPECT_EQ(device->host_usage().used_bytes, 0);
  }

  std::shared_ptr<BentIo> io = std::make_shared<BentIo>();
  Script script;
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Offloader<CpuDevice, ScriptAutograd>> offloader;
};

INSTANTIATE_TEST_SUITE_P(Lanes, CpuFailure,
                         ::testing::Values(CopyStreams::kTwo, CopyStreams::kOne,
                                           CopyStreams::kNone));

// The source is kept while its copy has not succeeded: the write fails, the tensor is intact.
TEST_P(CpuFailure, AFailedWriteKeepsTheSource) {
  CpuDeviceOptions options = on_disk();
  options.disk_io = io;
  use(options);
  io->next_writes({failing(EIO)});
  if (GetParam() == CopyStreams::kNone) {
    EXPECT_NE(message([&] { pack(1); }).find("Input/output error"), std::string::npos);
  } else {
    Save save = pack(1);
    EXPECT_NE(message([&] { evict(); }).find("Input/output error"), std::string::npos);
    backward(save, 1);
    EXPECT_THROW(evict(), DiskError) << "it failed for ever, and is there until its graph goes";
    save.reset();
  }
  expect_a_step_to_work();
  expect_nothing_left();
}

// Where the copy has a lane; without one the pack itself throws.
class CpuFailureOnALane : public CpuFailure {};
INSTANTIATE_TEST_SUITE_P(Lanes, CpuFailureOnALane,
                         ::testing::Values(CopyStreams::kTwo, CopyStreams::kOne));

TEST_P(CpuFailureOnALane, OneFailedWriteDoesNotFailTheNext) {
  CpuDeviceOptions options = on_disk();
  options.disk_io = io;
  use(options);
  io->next_writes({failing(EIO)});
  Save bad = pack(1);
  bad.reset();  // before anybody asked
  expect_a_step_to_work();
  expect_nothing_left();
}

TEST_P(CpuFailure, AFullDiskFailsThePackThatMetIt) {
  CpuDeviceOptions options = on_disk();
  options.disk->bytes_max = 2 * kElements * 4;
  use(options);
  std::vector<Save> saves;
  saves.push_back(pack(1));
  saves.push_back(pack(2));
  EXPECT_THROW(pack(3), DiskFull);
  backward(saves[1], 2);
  backward(saves[0], 1);
  saves.clear();
  expect_a_step_to_work();
  expect_nothing_left();
}

TEST_P(CpuFailure, FullMemoryFailsThePackThatMetIt) {
  CpuDeviceOptions options;
  options.host_bytes_max = 2 * kElements * 4;
  use(options);
  std::vector<Save> saves;
  saves.push_back(pack(1));
  saves.push_back(pack(2));
  const std::string text = message([&] { pack(3); });
  EXPECT_NE(text.find("16384"), std::string::npos) << text;
  EXPECT_NE(text.find("32768"), std::string::npos) << text;
  backward(saves[1], 2);
  saves.clear();
  expect_a_step_to_work();
  expect_nothing_left();
}

TEST_P(CpuFailure, AFlippedBitFailsTheBackwardThatReadsIt) {
  const auto flipping = std::make_shared<FlippingIo>();
  CpuDeviceOptions options = on_disk();
  options.disk_io = flipping;
  use(options);
  Save save = pack(1);
  evict();
  flipping->flips = 1;
  const std::string text = message([&] { backward(save, 1); });
  EXPECT_NE(text.find("offset"), std::string::npos) << text;
  backward(save, 1);  // the bytes on the disk are sound
  save.reset();
  expect_a_step_to_work();
  expect_nothing_left();
}

TEST_P(CpuFailure, AReloadThatFailsIsTheConsumersError) {
  CpuDeviceOptions options = on_disk();
  options.disk_io = io;
  use(options);
  Save save = pack(1);
  evict();
  io->next_reads({failing(EIO)});
  EXPECT_NE(message([&] { backward(save, 1); }).find("Input/output error"), std::string::npos);
  backward(save, 1);
  save.reset();
  expect_nothing_left();
}

// LibTorch's own allocator, out of memory while it is told to be.
class Short final : public c10::Allocator {
 public:
  explicit Short(c10::Allocator* upstream) : upstream_(upstream) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(!is_short, "out of memory: ", bytes);
    return upstream_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return upstream_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool is_short = false;

 private:
  c10::Allocator* upstream_;
};

TEST_P(CpuFailure, NoDeviceMemoryForAReload) {
  use({});
  Save save = pack(1);
  evict();
  Short allocator(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&allocator, 100);
  allocator.is_short = true;
  const std::string text = message([&] { backward(save, 1); });
  allocator.is_short = false;
  EXPECT_NE(text.find("out of memory: 16384"), std::string::npos) << text;
  backward(save, 1);
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 100);
  save.reset();
  expect_nothing_left();
}

TEST(CpuDeviceOptions, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(CpuDevice({.host_bytes_max = -1}), ValueError);
  EXPECT_THROW(CpuDevice({.host_cache_bytes_max = -1}), ValueError);
  EXPECT_THROW(CpuDevice({.pool_cache_bytes_max = -1}), ValueError);
  EXPECT_THROW(CpuDevice({.disk = DiskOptions{"/nowhere/at/all"}}), DiskError);
}

}  // namespace
}  // namespace ferry::real
