// The pools of page-locked memory that a capture of a CUDA graph uses. at::HostAllocator has them
// since PyTorch 2.11; earlier ones have none to pass on to.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

#include <functional>
#include <utility>

namespace ferry::vgpu {

// A host allocator that leaves the pools to `own`. `Base` is at::HostAllocator.
template <class Base>
class HostAllocatorWithPools : public Base {
 public:
  using Pool = std::pair<unsigned long long, unsigned long long>;  // c10::MempoolId_t

  explicit HostAllocatorWithPools(Base& own) : pools_of_(own) {}

  // These override the functions of Base that have their names, if it has them.
  virtual void begin_allocate_to_pool(Pool pool, std::function<bool(c10::Stream)> filter) {
    if constexpr (requires(Base & own) { own.begin_allocate_to_pool(pool, filter); }) {
      pools_of_.begin_allocate_to_pool(pool, std::move(filter));
    }
  }
  virtual void end_allocate_to_pool(Pool pool) {
    if constexpr (requires(Base & own) { own.end_allocate_to_pool(pool); }) {
      pools_of_.end_allocate_to_pool(pool);
    }
  }
  virtual void release_pool(Pool pool) {
    if constexpr (requires(Base & own) { own.release_pool(pool); }) pools_of_.release_pool(pool);
  }

 private:
  Base& pools_of_;
};

}  // namespace ferry::vgpu
