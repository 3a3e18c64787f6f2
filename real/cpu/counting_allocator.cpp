#include "real/cpu/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace ferry::real {
namespace {

constexpr std::uint8_t kPriority = 100;  // LibTorch's own allocator has 0

}  // namespace

CountingAllocator& CountingAllocator::instance() {
  static auto* const allocator = new CountingAllocator;  // tensors may outlive main
  return *allocator;
}

c10::Allocator* CountingAllocator::install() {
  c10::Allocator* const previous = c10::GetCPUAllocator();
  c10::SetCPUAllocator(this, kPriority);
  return previous;
}

void CountingAllocator::restore(c10::Allocator* previous) {
  c10::SetCPUAllocator(previous, kPriority);
}

std::int64_t CountingAllocator::live_bytes() {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

std::int64_t CountingAllocator::peak_bytes() {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void CountingAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  void* block = nullptr;
  try {
    block = c10::alloc_cpu(bytes);
  } catch (const c10::Error& error) {  // throws what a GPU's allocator would throw
    throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, error.what_without_backtrace());
  }
  if (block != nullptr) {  // null for 0 bytes
    count(block, static_cast<std::int64_t>(bytes));
    if (MemoryObserver* const observer = observer_) {
      observer->allocated(block, static_cast<std::int64_t>(bytes));
    }
  }
  return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const { return &give_back; }

void CountingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

void CountingAllocator::count(void* block, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  sizes_.emplace(block, bytes);
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
}

void CountingAllocator::forget(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(block);
  live_bytes_ -= found->second;
  sizes_.erase(found);
}

void CountingAllocator::give_back(void* block) {
  if (block == nullptr) return;
  if (MemoryObserver* const observer = instance().observer_) observer->freed(block);
  instance().forget(block);
  c10::free_cpu(block);
}

}  // namespace ferry::real
