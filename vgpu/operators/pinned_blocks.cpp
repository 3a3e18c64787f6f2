#include "vgpu/operators/pinned_blocks.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "vgpu/operators/host_pools.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

struct PinnedBlock {
  const void* address = nullptr;
  std::size_t bytes = 0;
  at::DeleterFnPtr free = nullptr;
};

class ToldHostAllocator final : public HostAllocatorWithPools<at::HostAllocator> {
 public:
  explicit ToldHostAllocator(at::HostAllocator& own) : HostAllocatorWithPools(own), own_(own) {}

  // The deleter of a DataPtr gets no allocator, so the allocator must be found here.
  static ToldHostAllocator*& instead() {
    static ToldHostAllocator* told = nullptr;
    return told;
  }

  at::DataPtr allocate(std::size_t bytes) override {
    at::DataPtr data = [&] {
      const InPinnedAllocator inside;
      return own_.allocate(bytes);
    }();
    if (data.get() == nullptr) return data;  // no bytes were requested
    {
      const std::lock_guard lock(mutex_);
      blocks_[data.get_context()] = {data.get(), bytes, data.get_deleter()};
    }
    note_pinned_block(BlockIs::kGivenOut, data.get(), bytes);
    void* const address = data.get();
    return {address, data.release_context(), &free, c10::DeviceType::CPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    own_.copy_data(to, from, bytes);
  }
  bool record_event(void* address, void* context, c10::Stream stream) override {
    return own_.record_event(address, context, stream);
  }
  void empty_cache() override {
    const InPinnedAllocator inside;
    own_.empty_cache();
  }
  at::HostStats get_stats() override { return own_.get_stats(); }
  void reset_accumulated_stats() override { own_.reset_accumulated_stats(); }
  void reset_peak_stats() override { own_.reset_peak_stats(); }

 private:
  static void free(void* context) {
    const PinnedBlock block = instead()->take(context);
    note_pinned_block(BlockIs::kReturned, block.address, block.bytes);
    block.free(context);
    note_pinned_block(BlockIs::kFree, block.address, block.bytes);
  }

  PinnedBlock take(const void* context) {
    const std::lock_guard lock(mutex_);
    return blocks_.extract(context).mapped();
  }

  at::HostAllocator& own_;
  std::mutex mutex_;
  std::unordered_map<const void*, PinnedBlock> blocks_;  // keyed by the DataPtr's context
};

}  // namespace

void tell_pinned_blocks() {
  if (ToldHostAllocator::instead() != nullptr) return;
  // Never destroyed, because tensors are freed until the process ends.
  ToldHostAllocator::instead() = new ToldHostAllocator(*at::getHostAllocator(at::kCUDA));
  at::setHostAllocator(at::kCUDA, ToldHostAllocator::instead(), 1);
}

}  // namespace ferry::vgpu
