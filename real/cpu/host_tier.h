// Stores offloaded bytes: in the host's memory, or in slots of a file (real/disk/disk_store.h).
//
// Memory has exact sizes, rounded up to 4096 bytes (to 512 below that). It is cached for the next
// buffer of the same size, up to a limit, because fresh pages cost more than the copy into them. A
// released block is *gated* until its events are done. At the memory limit, cached blocks are freed
// first, and then the caller waits for gated ones; otherwise it would depend on timing whether a
// buffer fits.
//
// A buffer whose copy failed keeps the error, and reading it throws that error. So a failed copy is
// never read as data, whatever happened to its event.
//
// Thread-safe. Page-locked memory and NUMA are not modelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real/cpu/stream.h"
#include "real/disk/disk_store.h"
#include "real/tensors/host_memory_error.h"
#include "shared/seam/device.h"

namespace ferry::real {

class Workers;

struct HostTierOptions {
  std::int64_t bytes_max = kUnlimited;  // memory in use and cached
  std::int64_t cache_bytes_max = 0;
  std::optional<DiskOptions> disk = {};
  std::shared_ptr<DiskIo> disk_io = nullptr;
};

// A buffer of the tier.
struct HostBlock {
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  std::int64_t bytes = 0;  // the requested size
  std::int64_t size = 0;   // the size of the memory
  Memory memory;
  DiskSlot slot;
  std::exception_ptr error;     // error of the copy that should have filled it
  std::vector<CpuEvent> gates;  // it is reused only when these are done
  std::list<HostBlock>::iterator self;
};

class HostTier {
 public:
  // Throws DiskError if the disk's directory cannot be used.
  HostTier(Workers& workers, HostTierOptions options);

  // Throws OutOfHostMemory, or DiskFull if the tier is a file. Then nothing has changed.
  HostBlock* allocate(std::int64_t bytes);
  // Takes the block back when `gates` are done. Blocks the caller if there is no memory to store
  // them.
  void release(HostBlock* block, std::span<const CpuEvent> gates) noexcept;
  // Takes back gated blocks whose events are done.
  void collect() noexcept;

  // The copies. They block. `read` throws the error of a failed write; `spoil` stores such an
  // error.
  void write(HostBlock& block, const void* from);
  void read(const HostBlock& block, void* to);
  void spoil(HostBlock& block, const std::exception_ptr& error) noexcept;

  HostUsage usage() const;
  std::int64_t in_use_bytes() const;  // includes gated blocks
  std::int64_t cached_bytes() const;
  const DiskStore* disk() const { return disk_.get(); }

 private:
  using Blocks = std::list<HostBlock>;

  std::optional<Blocks> find_cached(std::int64_t size);
  HostBlock* adopt(Blocks&& adopted);
  Blocks fresh_memory(std::int64_t bytes, std::int64_t size);
  Blocks fresh_slot(std::int64_t bytes);
  HostBlock::Memory memory(std::int64_t size);
  bool make_room(std::int64_t size);
  void trim(std::int64_t cached_bytes_max) noexcept;
  bool wait_for_gated(std::uint64_t seen);
  Blocks take_done() noexcept;
  void retire(Blocks&& returned) noexcept;
  std::uint64_t retired() const;
  std::int64_t memory_limit() const;
  void count_in_use(std::int64_t bytes) noexcept;

  Workers& workers_;
  const HostTierOptions options_;
  const std::int64_t memory_bytes_;  // the machine's memory
  std::unique_ptr<DiskStore> disk_;

  // One thread collects at a time. So a thread that finds nothing knows that no other is
  // collecting.
  std::mutex collecting_;
  mutable std::mutex mutex_;  // taken after collecting_
  Blocks in_use_;
  Blocks gated_;
  // The cached blocks by size and order of return, and their sizes in that order.
  std::map<std::pair<std::int64_t, std::uint64_t>, Blocks> cached_;
  std::map<std::uint64_t, std::int64_t> cached_sizes_;
  std::int64_t in_use_bytes_ = 0;
  std::int64_t cached_bytes_ = 0;
  std::uint64_t retired_ = 0;  // number of blocks that came back
};

}  // namespace ferry::real
