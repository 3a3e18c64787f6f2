#include "real/train/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>

#include "real/cpu/malloc_thresholds.h"

namespace ferry::real::train {

namespace {

// Sizes are in a table, not in the blocks, so that LibTorch's allocator places these as ever.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = reserve(bytes);
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static CountingAllocator& instance() {
    static auto* const allocator = new CountingAllocator;  // tensors may outlive main
    return *allocator;
  }

  void observe(MemoryObserver* observer) { observer_ = observer; }

  std::int64_t live_bytes() {
    const std::lock_guard lock(mutex_);
    return live_bytes_;
  }
  std::int64_t peak_bytes() {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_bytes_ = live_bytes_;
  }

 private:
  void* reserve(std::size_t bytes) {
    void* block = nullptr;
    try {
      block = c10::alloc_cpu(bytes);
    } catch (const c10::Error& error) {  // with the type that a GPU's allocator would throw
      throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, error.what_without_backtrace());
    }
    if (block == nullptr) return nullptr;  // no bytes
    count(block, static_cast<std::int64_t>(bytes));
    if (MemoryObserver* const observer = observer_) {
      observer->allocated(block, static_cast<std::int64_t>(bytes));
    }
    return block;
  }
  void count(void* block, std::int64_t size) {
    const std::lock_guard lock(mutex_);
    sizes_.emplace(block, size);
    live_bytes_ += size;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  }

  static void give_back(void* block) {
    if (block == nullptr) return;
    if (MemoryObserver* const observer = instance().observer_) observer->freed(block);
    instance().forget(block);
    c10::free_cpu(block);
  }
  void forget(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    live_bytes_ -= found->second;
    sizes_.erase(found);
  }

  std::atomic<MemoryObserver*> observer_ = nullptr;
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

// Statistics of a device that has a caching allocator, since the last reset.
c10::CachingDeviceAllocator::DeviceStats device_stats(c10::Device device) {
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
}

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

void count_memory() {
  fix_malloc_thresholds();
  c10::SetCPUAllocator(&CountingAllocator::instance(), /*priority=*/100);
}

void observe_memory(MemoryObserver* observer) { CountingAllocator::instance().observe(observer); }

std::int64_t live_bytes() { return CountingAllocator::instance().live_bytes(); }

Resident resident() {
  Resident resident;
  std::ifstream status("/proc/self/status");
  std::string key;
  std::int64_t kibibytes = 0;
  while (status >> key) {
    if ((key == "VmRSS:" || key == "VmHWM:") && status >> kibibytes) {
      (key == "VmRSS:" ? resident.bytes : resident.peak_bytes) = kibibytes << 10;
    }
    std::getline(status, key);
  }
  return resident;
}

StepMemory::StepMemory(c10::Device device) : device_(device) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << 5 << std::flush;
  has_peak_ = reset.good();
  if (device_.is_cpu()) {
    CountingAllocator::instance().reset_peak();
  } else {
    at::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
  }
}

std::int64_t StepMemory::peak_bytes() const {
  if (device_.is_cpu()) return CountingAllocator::instance().peak_bytes();
  return device_stats(device_).allocated_bytes[kAll].peak;
}

std::int64_t StepMemory::reserved_bytes() const {
  return device_.is_cpu() ? 0 : device_stats(device_).reserved_bytes[kAll].peak;
}

std::int64_t StepMemory::rss_bytes() const {
  const Resident now = resident();
  return has_peak_ ? now.peak_bytes : now.bytes;
}

}  // namespace ferry::real::train
