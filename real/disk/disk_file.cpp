#include "real/disk/disk_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "real/disk/extents.h"

namespace ferry::real {
namespace {

std::string error_text(int error) {
  return std::generic_category().message(error) + " (errno " + std::to_string(error) + ")";
}

[[noreturn]] void fail(const std::string& what, int error) {
  throw FileFailure(what + ": " + error_text(error), error);
}

bool unsupported(int error) {
  return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == ENODEV;
}

// Repeats a call if a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::string place(const char* verb, std::int64_t bytes, std::int64_t offset) {
  return std::string(verb) + " of " + std::to_string(bytes) + " bytes at offset " +
         std::to_string(offset);
}

// Calls transfer(done), which returns what pread and pwrite return, until all `bytes` have moved.
template <class Transfer>
void transfer_all(const char* verb, const char* stalled, std::int64_t offset, std::int64_t bytes,
                  std::int64_t unit, const Transfer& transfer) {
  constexpr int kStallsMax = 2;
  int stalls = 0;
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t moved = uninterrupted([&] { return transfer(done); });
    if (moved < 0) {
      const int error = errno;
      fail(place(verb, bytes, offset) + " failed after " + std::to_string(done), error);
    }
    // Only the last piece may be less than a whole unit.
    const std::int64_t kept = done + moved < bytes ? moved / unit * unit : moved;
    stalls = kept == 0 ? stalls + 1 : 0;
    if (stalls == kStallsMax) {
      throw FileFailure(place(verb, bytes, offset) + ' ' + stalled + " after " +
                            std::to_string(done + moved) + " bytes",
                        EIO);
    }
    done += kept;
  }
}

}  // namespace

FileFailure::FileFailure(const std::string& what, int error)
    : std::runtime_error(what), error_(error) {}

bool FileFailure::full() const noexcept {
  return error_ == ENOSPC || error_ == EDQUOT || error_ == EFBIG;
}

DiskFile::DiskFile(const std::filesystem::path& directory, std::shared_ptr<DiskIo> io)
    : io_(std::move(io)), file_(open(directory)) {
  try {
    probe();
  } catch (...) {
    io_->close(file_);
    throw;
  }
}

DiskFile::~DiskFile() { io_->close(file_); }

int DiskFile::open(const std::filesystem::path& directory) {
  int file = uninterrupted([&] { return io_->open_unnamed(directory.c_str()); });
  if (file >= 0) return file;
  // Kernels before 3.11 return EISDIR.
  if (!unsupported(errno) && errno != EISDIR) fail("cannot create a file", errno);
  std::string name = directory / "ferry-XXXXXX";
  file = uninterrupted([&] { return io_->open_named(name.data()); });
  if (file < 0) fail("cannot create a file", errno);
  if (io_->unlink(name.c_str()) != 0) {
    const int error = errno;
    io_->close(file);
    fail("cannot unlink " + name, error);
  }
  return file;
}

void DiskFile::probe() {
  probe_direct();
  preallocates_ = true;
  try {
    claim(0, kBlockBytes);
  } catch (const FileFailure& failure) {
    if (!unsupported(failure.error())) throw;
    preallocates_ = false;
  }
  probe_transfer();
  punches_holes_ = punch(0, kBlockBytes);
  if (!truncate(0)) fail("cannot truncate the file", errno);
}

void DiskFile::probe_direct() {
  DirectAlignment alignment;
  if (io_->direct_alignment(file_, &alignment) != 0) return;
  const auto fits = [](std::int64_t unit) { return unit > 0 && kBlockBytes % unit == 0; };
  if (!fits(alignment.memory) || !fits(alignment.offset)) return;
  if (io_->set_direct(file_, true) != 0) return;
  direct_ = true;
  memory_alignment_ = alignment.memory;
}

void DiskFile::probe_transfer() {
  alignas(kBlockBytes) std::array<std::byte, kBlockBytes> block = {};
  const auto once = [&] {
    write(0, block.data(), kBlockBytes);
    read(0, block.data(), kBlockBytes);
  };
  try {
    once();
  } catch (const FileFailure& failure) {
    if (!direct_ || !unsupported(failure.error()) || io_->set_direct(file_, false) != 0) throw;
    direct_ = false;
    memory_alignment_ = 1;
    once();
  }
}

void DiskFile::claim(std::int64_t offset, std::int64_t bytes) {
  if (!preallocates_) return;
  if (uninterrupted([&] { return io_->preallocate(file_, offset, bytes); }) == 0) return;
  const int error = errno;
  fail(place("allocation", bytes, offset) + " failed", error);
}

bool DiskFile::punch(std::int64_t offset, std::int64_t bytes) noexcept {
  return uninterrupted([&] { return io_->punch_hole(file_, offset, bytes); }) == 0;
}

bool DiskFile::truncate(std::int64_t bytes) noexcept {
  return uninterrupted([&] { return io_->truncate(file_, bytes); }) == 0;
}

void DiskFile::write(std::int64_t offset, const void* from, std::int64_t bytes) {
  const auto* const bytes_from = static_cast<const std::byte*>(from);
  transfer_all("write", "made no progress", offset, bytes, direct_ ? kBlockBytes : 1,
               [&](std::int64_t done) {
                 return io_->write_at(file_, bytes_from + done, bytes - done, offset + done);
               });
}

void DiskFile::read(std::int64_t offset, void* to, std::int64_t bytes) {
  auto* const bytes_to = static_cast<std::byte*>(to);
  transfer_all("read", "ended early", offset, bytes, direct_ ? kBlockBytes : 1,
               [&](std::int64_t done) {
                 return io_->read_at(file_, bytes_to + done, bytes - done, offset + done);
               });
}

void DiskFile::uncache_written(std::int64_t offset, std::int64_t bytes) {
  if (direct_ || bytes == 0) return;
  if (uninterrupted([&] { return io_->write_back(file_, offset, bytes); }) != 0) {
    const int error = errno;
    if (!unsupported(error)) fail(place("write-back", bytes, offset) + " failed", error);
  }
  uncache_read(offset, bytes);
}

void DiskFile::uncache_read(std::int64_t offset, std::int64_t bytes) {
  if (direct_ || bytes == 0) return;
  io_->drop_cache(file_, offset, bytes);  // only advice: nothing depends on it
}

}  // namespace ferry::real
