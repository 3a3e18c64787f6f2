// The disk tier: one unnamed file that holds what was offloaded, a slot for each buffer.
//
// The file has no name from the start (O_TMPFILE, or created and unlinked at once where the file
// system lacks that), so the kernel frees it with the process, however the process ends, and the
// directory may be removed while the store is in use. Space is allocated in extents of 4096 bytes,
// first fit (extents.h); a slot's blocks are claimed from the file system by allocate(), so that a
// full disk is met there and seldom in a write, and are given back by free(): by a hole, or by
// cutting the end of the file where the file system knows no holes. The bytes bypass the page
// cache (O_DIRECT) if the file system allows it. If not, every call writes them back and drops
// them from the cache: offloaded bytes should not stay in memory. (A tmpfs is memory; nothing
// helps there.)
//
// Every read is checked against the XXH3 sum (64 bits) taken by the write. Sums and places live in
// memory alone: the file means nothing to another process.
//
// Not modelled: durability (nothing is synced for its own sake) and several files or disks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "real/disk/disk_error.h"
#include "shared/seam/options.h"

namespace ferry::real {

class DiskIo;

struct DiskOptions {
  // It must exist and be writable; the store creates no directory.
  std::filesystem::path directory;
  // Bounds the bytes that the store claims at any time: its slots, in whole blocks of 4096 bytes.
  // If freed blocks are kept or the file system cannot punch holes, it bounds the file's length
  // instead.
  std::int64_t bytes_max = kUnlimited;
  // Freed blocks stay the file's, for slots to come, until the store ends. A program whose steps
  // offload alike then writes over blocks that it has, which is faster than fresh ones, and free()
  // costs nothing: a hole took up to milliseconds on an ext4 mounted with `discard`.
  bool keep_freed = false;
};

// A place in the store's file. A plain value that owns nothing: its allocator must free it, once.
// Default: no place, which free() ignores.
struct DiskSlot {
  std::int64_t offset = -1;
  std::int64_t bytes = 0;
  // XXH3 of the bytes; none before the first successful write, and after a failed one.
  std::optional<std::uint64_t> checksum;
};

struct DiskUsage {
  std::int64_t slots = 0;
  std::int64_t in_use_bytes = 0;  // counted in whole blocks
  std::int64_t in_use_peak_bytes = 0;
  std::int64_t claimed_bytes = 0;  // the quantity that bytes_max bounds
  std::int64_t file_bytes = 0;     // to the end of the last slot, gaps included
  std::int64_t writes = 0;         // successful ones; the same for reads
  std::int64_t written_bytes = 0;
  std::int64_t reads = 0;
  std::int64_t read_bytes = 0;
  std::int64_t corrupt_reads = 0;   // reads whose sum differed
  std::int64_t failed_returns = 0;  // free() calls where the file system kept the blocks
  bool direct = false;              // the page cache is bypassed
  bool preallocates = false;        // the file system lets allocate() claim blocks
  bool punches_holes = false;       // it lets free() give back any of them, not the last alone
};

// Thread-safe: slots are independent, and calls on different slots run side by side. Calls on one
// slot are its owner's to order. After any exception the store is as it was before the call, but
// for the contents and the checksum of a slot whose write failed.
class DiskStore {
 public:
  // DiskError if the directory does not exist, is no directory or is not writable; DiskFull if its
  // file system has no block left. `io` replaces the system calls (disk_io.h); null: the real ones.
  explicit DiskStore(DiskOptions options, std::shared_ptr<DiskIo> io = nullptr);
  // Slots need not be freed before it.
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  // DiskFull beyond the limit or if the disk is full; std::invalid_argument for bytes < 0.
  DiskSlot allocate(std::int64_t bytes);
  // Ends a slot of this store. Freeing anything else is a programmer's error and terminates.
  void free(const DiskSlot& slot) noexcept;

  // Writes slot.bytes bytes from `from`, blocking, and sets the checksum. Any alignment will do;
  // with direct I/O a pointer aligned to buffer_alignment() is used in place, any other through a
  // buffer of the store. DiskFull, DiskError.
  void write(DiskSlot& slot, const void* from);
  // Reads slot.bytes bytes into `to`, blocking, and checks them. DiskError names the offset, and
  // both sums if they differ; `to` then holds garbage. std::logic_error if the slot has no
  // checksum.
  void read(const DiskSlot& slot, void* to);

  DiskUsage usage() const;
  // The alignment with which a pointer's bytes need no extra copy; 1 if no alignment
  // helps.
  std::int64_t buffer_alignment() const noexcept;
  const std::filesystem::path& directory() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ferry::real
