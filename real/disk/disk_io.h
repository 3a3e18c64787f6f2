// The system calls of the disk tier, with one virtual function for each, so that tests can replace
// one of them.
//
// Each function behaves like its system call: on failure it returns -1 and sets errno, it may
// transfer less than requested, and it may be interrupted. Several threads call it at once.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ferry::real {

// The alignments of addresses and offsets for direct I/O on a file; 0 if there is no direct I/O.
struct DirectAlignment {
  std::int64_t memory = 0;
  std::int64_t offset = 0;
};

class DiskIo {
 public:
  DiskIo() = default;
  virtual ~DiskIo() = default;
  DiskIo(const DiskIo&) = delete;
  DiskIo& operator=(const DiskIo&) = delete;

  // open(O_TMPFILE) in `directory`, for reading and writing.
  virtual int open_unnamed(const char* directory);
  // mkostemp: `name` ends in XXXXXX and is replaced.
  virtual int open_named(char* name);
  virtual int unlink(const char* name);
  virtual int close(int file);
  // fcntl: sets or clears O_DIRECT.
  virtual int set_direct(int file, bool direct);
  // statx. If the kernel does not know, both are a whole block.
  virtual int direct_alignment(int file, DirectAlignment* alignment);
  virtual ssize_t write_at(int file, const void* from, std::int64_t bytes, std::int64_t offset);
  virtual ssize_t read_at(int file, void* to, std::int64_t bytes, std::int64_t offset);
  // fallocate: the first makes the file longer; the second punches a hole and keeps the length.
  virtual int preallocate(int file, std::int64_t offset, std::int64_t bytes);
  virtual int punch_hole(int file, std::int64_t offset, std::int64_t bytes);
  virtual int truncate(int file, std::int64_t bytes);
  // sync_file_range, which also waits; and POSIX_FADV_DONTNEED, which drops clean pages.
  virtual int write_back(int file, std::int64_t offset, std::int64_t bytes);
  virtual int drop_cache(int file, std::int64_t offset, std::int64_t bytes);
  // Returns the bytes that an unprivileged process may still use in the file system, or -1.
  virtual std::int64_t free_bytes(int file);
};

}  // namespace ferry::real
