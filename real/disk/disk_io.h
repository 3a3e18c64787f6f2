// The system calls that the disk tier makes, one virtual function each, so that tests can bend one
// and leave the rest real.
//
// Every function behaves as the call it stands for: it returns -1 and sets errno on failure, may
// transfer less than asked, and may be interrupted. Called from many threads at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ferry::real {

// The alignments that direct I/O on a file needs, of addresses and of offsets; 0: it has none.
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
  // statx; if the kernel gives no answer, a whole block for both.
  virtual int direct_alignment(int file, DirectAlignment* alignment);
  virtual ssize_t write_at(int file, const void* from, std::int64_t bytes, std::int64_t offset);
  virtual ssize_t read_at(int file, void* to, std::int64_t bytes, std::int64_t offset);
  // fallocate, growing the file; and fallocate with a hole punched, keeping its length.
  virtual int preallocate(int file, std::int64_t offset, std::int64_t bytes);
  virtual int punch_hole(int file, std::int64_t offset, std::int64_t bytes);
  virtual int truncate(int file, std::int64_t bytes);
  // sync_file_range, there and back; and POSIX_FADV_DONTNEED, which drops what is clean.
  virtual int write_back(int file, std::int64_t offset, std::int64_t bytes);
  virtual int drop_cache(int file, std::int64_t offset, std::int64_t bytes);
  // The bytes that an unprivileged process may still claim in the file's file system, or -1.
  virtual std::int64_t free_bytes(int file);
};

}  // namespace ferry::real
