// The disk tier: one file without a name that holds offloaded bytes, with a slot for each buffer.
//
// The file never has a name (O_TMPFILE, or it is created and unlinked at once if the file system
// lacks that). So the kernel frees it when the process ends, in whatever way, and the directory may
// be removed meanwhile. Space is allocated in extents of 4096 bytes, first fit (extents.h).
// allocate() claims the blocks of a slot from the file system, so a full disk is found there and
// rarely in a write. free() gives them back by punching a hole, or by cutting off the end of the
// file if the file system has no holes. The bytes bypass the page cache (O_DIRECT) if the file
// system allows it. If not, every call writes them back and removes them from the cache, because
// offloaded bytes should not stay in memory. (A tmpfs is memory itself.)
//
// Every read is compared with the XXH3 sum (64 bits) of the write. Sums and offsets are only in
// memory, so the file means nothing to another process.
//
// Durability is not a goal: nothing is synced for its own sake. There is one file on one disk.
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
  // It must exist and be writable. The store creates no directory.
  std::filesystem::path directory;
  // The limit of the bytes that the store claims: its slots, in whole blocks of 4096 bytes. If
  // freed blocks are kept, or the file system cannot punch holes, it limits the length of the file
  // instead.
  std::int64_t bytes_max = kUnlimited;
  // Keep freed blocks in the file for later slots, until the store ends. A program whose steps
  // offload the same sizes then overwrites blocks that it has, which is faster than fresh ones.
  // free() then costs nothing; punching a hole took up to milliseconds on an ext4 mounted with
  // `discard`.
  bool keep_freed = false;
};

// A range of the store's file. It is a plain value that owns nothing: whoever allocated it must
// free it once. A default slot is empty, and free() ignores it.
struct DiskSlot {
  std::int64_t offset = -1;
  std::int64_t bytes = 0;
  // XXH3 of the bytes; none before the first successful write and after a failed one.
  std::optional<std::uint64_t> checksum;
};

struct DiskUsage {
  std::int64_t slots = 0;
  std::int64_t in_use_bytes = 0;  // in whole blocks
  std::int64_t in_use_peak_bytes = 0;
  std::int64_t claimed_bytes = 0;  // what bytes_max limits
  std::int64_t file_bytes = 0;     // to the end of the last slot, including gaps
  std::int64_t writes = 0;         // successful ones, as for reads
  std::int64_t written_bytes = 0;
  std::int64_t reads = 0;
  std::int64_t read_bytes = 0;
  std::int64_t corrupt_reads = 0;   // reads whose sum differed
  std::int64_t failed_returns = 0;  // free() calls after which the file system kept the blocks
  bool direct = false;              // bypasses the page cache
  bool preallocates = false;        // allocate() can claim blocks
  bool punches_holes = false;       // free() can give back any block, not only the last
};

// Thread-safe: slots are independent, and calls for different slots may run at once. The owner of a
// slot orders the calls for it. After an exception the store is as before the call, except for the
// contents and the checksum of a slot whose write failed.
class DiskStore {
 public:
  // Throws DiskError if the directory does not exist, is not a directory or is not writable;
  // DiskFull if its file system has no block left. `io` replaces the system calls (disk_io.h);
  // null: the real ones.
  explicit DiskStore(DiskOptions options, std::shared_ptr<DiskIo> io = nullptr);
  // Slots need not be freed before it.
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  // Throws DiskFull at the limit or if the disk is full; std::invalid_argument if bytes < 0.
  DiskSlot allocate(std::int64_t bytes);
  // Ends a slot of this store. To free anything else is a bug, and terminates the process.
  void free(const DiskSlot& slot) noexcept;

  // Writes slot.bytes bytes from `from` and sets the checksum. It blocks. Any alignment works; with
  // direct I/O a pointer aligned to buffer_alignment() is used directly, others go through a buffer
  // of the store. Throws DiskFull or DiskError.
  void write(DiskSlot& slot, const void* from);
  // Reads slot.bytes bytes into `to` and checks them. It blocks. DiskError names the offset, and
  // both sums if they differ; the contents of `to` are then undefined. Throws std::logic_error if
  // the slot has no checksum.
  void read(const DiskSlot& slot, void* to);

  DiskUsage usage() const;
  // Returns the alignment with which pointers need no extra copy; 1 if alignment does not matter.
  std::int64_t buffer_alignment() const noexcept;
  const std::filesystem::path& directory() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ferry::real
