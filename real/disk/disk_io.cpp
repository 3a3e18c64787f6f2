#include "real/disk/disk_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <limits>

#include "real/disk/extents.h"

namespace ferry::real {

int DiskIo::open_unnamed(const char* directory) {
  return ::open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

int DiskIo::open_named(char* name) { return ::mkostemp(name, O_CLOEXEC); }

int DiskIo::unlink(const char* name) { return ::unlink(name); }

int DiskIo::close(int file) { return ::close(file); }

int DiskIo::set_direct(int file, bool direct) {
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0) return -1;
  return ::fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

int DiskIo::direct_alignment(int file, DirectAlignment* alignment) {
  *alignment = {.memory = kBlockBytes, .offset = kBlockBytes};
#ifdef STATX_DIOALIGN  // since Linux 6.1
  struct statx status = {};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return -1;
  if ((status.stx_mask & STATX_DIOALIGN) != 0) {
    *alignment = {.memory = status.stx_dio_mem_align, .offset = status.stx_dio_offset_align};
  }
#endif
  return 0;
}

ssize_t DiskIo::write_at(int file, const void* from, std::int64_t bytes, std::int64_t offset) {
  return ::pwrite(file, from, static_cast<std::size_t>(bytes), offset);
}

ssize_t DiskIo::read_at(int file, void* to, std::int64_t bytes, std::int64_t offset) {
  return ::pread(file, to, static_cast<std::size_t>(bytes), offset);
}

int DiskIo::preallocate(int file, std::int64_t offset, std::int64_t bytes) {
  return ::fallocate(file, 0, offset, bytes);
}

int DiskIo::punch_hole(int file, std::int64_t offset, std::int64_t bytes) {
  return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

int DiskIo::truncate(int file, std::int64_t bytes) { return ::ftruncate(file, bytes); }

int DiskIo::write_back(int file, std::int64_t offset, std::int64_t bytes) {
  return ::sync_file_range(
      file, offset, bytes,
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

int DiskIo::drop_cache(int file, std::int64_t offset, std::int64_t bytes) {
  const int error = ::posix_fadvise(file, offset, bytes, POSIX_FADV_DONTNEED);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

std::int64_t DiskIo::free_bytes(int file) {
  struct statvfs status = {};
  if (::fstatvfs(file, &status) != 0) return -1;
  const auto blocks = static_cast<std::int64_t>(status.f_bavail);
  const auto block_bytes = static_cast<std::int64_t>(status.f_frsize);
  if (block_bytes > 0 && blocks > std::numeric_limits<std::int64_t>::max() / block_bytes) return -1;
  return blocks * block_bytes;
}

}  // namespace ferry::real
