// LibTorch's CPU allocator with a count of the bytes that it has handed out, and with an observer
// of each block. ferry train and traces read the count (real/train/memory.h, real/api/trace.h); a
// stream log observes the blocks (real/log/log_streams.h).
//
// It allocates as LibTorch's own allocator does. Sizes are in a table and not in the blocks, so
// blocks are placed as usual. Each block comes back here, even if another CPU allocator is
// installed by then.
#pragma once

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace ferry::real {

// Called for each block, after it was allocated and before it is freed. May be called on any
// thread; must not allocate tensors.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  virtual void allocated(const void* block, std::int64_t bytes) noexcept = 0;
  virtual void freed(const void* block) noexcept = 0;
};

// Thread-safe.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& instance();

  // Makes it the CPU allocator. Returns the previous one, for restore().
  c10::Allocator* install();
  static void restore(c10::Allocator* previous);

  // Null: no observer. Another thread may still be calling the previous one, so never destroy
  // observers.
  void observe(MemoryObserver* observer) { observer_ = observer; }

  // Counts of the bytes that it handed out.
  std::int64_t live_bytes();
  std::int64_t peak_bytes();
  void reset_peak();

  // Throws c10::OutOfMemoryError.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

 private:
  CountingAllocator() = default;
  void count(void* block, std::int64_t bytes);
  void forget(void* block);
  static void give_back(void* block);

  std::atomic<MemoryObserver*> observer_ = nullptr;
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace ferry::real
