// The one file of a store. It has no name, it is probed for what its file system can do, and each
// transfer is complete or an error.
//
// The abilities of the file system are found by trying each on the first block, before anything
// depends on them: some file systems accept O_DIRECT and then fail the write, some have no
// fallocate, some no holes. Afterwards nothing changes, so all threads see the same file.
// Interrupted and short transfers are continued, with direct I/O from the last whole block. A
// transfer that makes no progress twice in a row is an error: the file ends early, or the device
// takes no more.
//
// Failures are FileFailure. They say what was tried, where, how far it got, and errno. The store
// knows what is in use, and converts them to DiskError or DiskFull.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "real/disk/disk_io.h"

namespace ferry::real {

class FileFailure : public std::runtime_error {
 public:
  FileFailure(const std::string& what, int error);
  int error() const noexcept { return error_; }
  // True if there is no space: on the disk, in the quota, or below the largest file size.
  bool full() const noexcept;

 private:
  int error_;
};

class DiskFile {
 public:
  DiskFile(const std::filesystem::path& directory, std::shared_ptr<DiskIo> io);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  bool direct() const noexcept { return direct_; }
  bool preallocates() const noexcept { return preallocates_; }
  bool punches_holes() const noexcept { return punches_holes_; }
  // The alignment that write and read need for pointers; 1 if I/O is not direct.
  std::int64_t memory_alignment() const noexcept { return memory_alignment_; }
  std::int64_t free_bytes() const { return io_->free_bytes(file_); }

  // Claims blocks for these bytes now. Does nothing if the file system cannot do that.
  void claim(std::int64_t offset, std::int64_t bytes);
  // Each returns true if the file system did it.
  bool punch(std::int64_t offset, std::int64_t bytes) noexcept;
  bool truncate(std::int64_t bytes) noexcept;

  // With direct I/O, offset and bytes must be multiples of kBlockBytes and the pointer aligned.
  void write(std::int64_t offset, const void* from, std::int64_t bytes);
  void read(std::int64_t offset, void* to, std::int64_t bytes);
  // Removes these bytes from the page cache after a write (which it completes) or a read. Does
  // nothing with direct I/O.
  void uncache_written(std::int64_t offset, std::int64_t bytes);
  void uncache_read(std::int64_t offset, std::int64_t bytes);

 private:
  int open(const std::filesystem::path& directory);
  void probe();
  void probe_direct();
  void probe_transfer();

  std::shared_ptr<DiskIo> io_;
  int file_ = -1;
  bool direct_ = false;
  bool preallocates_ = false;
  bool punches_holes_ = false;
  std::int64_t memory_alignment_ = 1;
};

}  // namespace ferry::real
