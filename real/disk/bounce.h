// Aligned buffers for direct I/O with pointers that are not aligned.
//
// Each store has such a pool. A buffer is leased for one call and kept for the next. So there are
// as many buffers as calls that ran at once, and calls do not fault in fresh pages. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "real/disk/extents.h"

namespace ferry::real {

class BouncePool {
 public:
  static constexpr std::int64_t kBytes = std::int64_t{2} << 20;

  // A buffer of kBytes, aligned to kBlockBytes, until the lease ends. Throws bad_alloc if there is
  // no memory for another one.
  class Lease {
   public:
    explicit Lease(BouncePool& pool) : pool_(pool), buffer_(pool.take()) {}
    ~Lease() { pool_.give(std::move(buffer_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    std::byte* data() const { return buffer_.get(); }

   private:
    friend class BouncePool;
    static constexpr std::align_val_t kAlignment{kBlockBytes};
    struct Free {
      void operator()(std::byte* memory) const noexcept { operator delete(memory, kAlignment); }
    };
    using Buffer = std::unique_ptr<std::byte, Free>;

    BouncePool& pool_;
    Buffer buffer_;
  };

 private:
  Lease::Buffer take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Lease::Buffer buffer = std::move(idle_.back());
        idle_.pop_back();
        return buffer;
      }
    }
    return Lease::Buffer(static_cast<std::byte*>(operator new(kBytes, Lease::kAlignment)));
  }

  void give(Lease::Buffer buffer) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(buffer));
    } catch (const std::bad_alloc&) {
      // There is no memory to keep it, so it is freed.
    }
  }

  std::mutex mutex_;
  std::vector<Lease::Buffer> idle_;
};

}  // namespace ferry::real
