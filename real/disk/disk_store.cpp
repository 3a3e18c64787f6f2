#include "real/disk/disk_store.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "real/disk/bounce.h"
#include "real/disk/checksum.h"
#include "real/disk/disk_file.h"
#include "real/disk/disk_io.h"
#include "real/disk/extents.h"

namespace ferry::real {
namespace {

std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

bool is_aligned(const void* pointer, std::int64_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) == 0;
}

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

class DiskStore::Impl {
 public:
  Impl(DiskOptions options, std::shared_ptr<DiskIo> io);

  DiskSlot allocate(std::int64_t bytes);
  void free(const DiskSlot& slot);
  void write(DiskSlot& slot, const void* from);
  void read(const DiskSlot& slot, void* to);
  DiskUsage usage() const;

  const DiskOptions& options() const { return options_; }
  const std::optional<DiskFile>& file() const { return file_; }

 private:
  // The treatment of freed space: punch a hole, cut off the end of the file, or keep it.
  enum class Return : std::uint8_t { kPunch, kTruncate, kKeep };

  std::int64_t reserve(std::int64_t bytes);
  void give_back(std::int64_t offset, std::int64_t bytes, bool punch, bool cut);
  void expect_slot(const DiskSlot& slot) const;
  std::uint64_t send(const DiskSlot& slot, const void* from);
  std::uint64_t fetch(const DiskSlot& slot, void* to);
  // Returns the number of leading bytes that need no buffer.
  std::int64_t in_place(const DiskSlot& slot, const void* pointer) const;
  std::int64_t claimed() const;
  std::string name() const { return "disk store in " + options_.directory.string() + ": "; }
  [[noreturn]] void fail(const FileFailure& failure, std::int64_t bytes) const;

  const DiskOptions options_;
  std::optional<DiskFile> file_;
  Return return_ = Return::kPunch;
  BouncePool bounces_;

  mutable std::mutex mutex_;  // guards the members below; not held during a transfer
  Extents extents_;
  std::int64_t length_ = 0;  // the furthest end that was reserved and not cut off
  DiskUsage usage_;
};

DiskStore::Impl::Impl(DiskOptions options, std::shared_ptr<DiskIo> io)
    : options_(std::move(options)) {
  if (options_.bytes_max < 0) {
    throw std::invalid_argument("bytes_max should be at least 0 but is " +
                                std::to_string(options_.bytes_max));
  }
  try {
    file_.emplace(options_.directory, io ? std::move(io) : std::make_shared<DiskIo>());
  } catch (const FileFailure& failure) {
    fail(failure, kBlockBytes);
  }
  if (options_.keep_freed) {
    return_ = Return::kKeep;
  } else if (!file_->punches_holes()) {
    return_ = Return::kTruncate;
  }
}

void DiskStore::Impl::fail(const FileFailure& failure, std::int64_t bytes) const {
  const std::string what = name() + failure.what();
  if (!failure.full()) throw make_error<void>(DiskError(what));
  const std::int64_t in_use = usage().in_use_bytes;
  const std::int64_t left = file_ ? file_->free_bytes() : 0;
  throw make_error<void>(DiskFull(what + "; " + std::to_string(bytes) + " bytes asked, " +
                                      std::to_string(in_use) + " in use, " +
                                      (left < 0 ? "an unknown number" : std::to_string(left)) +
                                      " free on the file system",
                                  bytes, in_use, left));
}

std::int64_t DiskStore::Impl::claimed() const {
  return return_ == Return::kPunch ? extents_.taken_bytes() : std::max(length_, extents_.end());
}

std::int64_t DiskStore::Impl::reserve(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t before = claimed();
  const auto full = [&] {
    const std::int64_t in_use = extents_.taken_bytes();
    const std::int64_t left = std::max<std::int64_t>(0, options_.bytes_max - before);
    throw make_error<void>(DiskFull(name() + "the limit of " + std::to_string(options_.bytes_max) +
                                        " bytes is reached: " + std::to_string(bytes) +
                                        " bytes asked, " + std::to_string(in_use) + " in use, " +
                                        std::to_string(left) + " left",
                                    bytes, in_use, left));
  };
  // Sizes whose end would overflow are beyond any limit.
  if (bytes > kUnlimited - kBlockBytes - extents_.end()) full();
  const std::int64_t reserved = whole_blocks(bytes);
  const std::int64_t offset = extents_.allocate(reserved);
  if (claimed() > options_.bytes_max) {
    extents_.release(offset, reserved);
    full();
  }
  length_ = std::max(length_, extents_.end());
  return offset;
}

DiskSlot DiskStore::Impl::allocate(std::int64_t bytes) {
  if (bytes < 0) throw std::invalid_argument("a slot of " + std::to_string(bytes) + " bytes");
  if (bytes == 0) return {};
  const std::int64_t offset = reserve(bytes);
  const std::int64_t reserved = whole_blocks(bytes);
  try {
    file_->claim(offset, reserved);
  } catch (const FileFailure& failure) {
    // Part of it may have been claimed, so it is given back whatever happens to other freed space.
    give_back(offset, reserved, file_->punches_holes(), true);
    fail(failure, bytes);
  }
  const std::lock_guard lock(mutex_);
  usage_.in_use_peak_bytes = std::max(usage_.in_use_peak_bytes, extents_.taken_bytes());
  return {.offset = offset, .bytes = bytes, .checksum = std::nullopt};
}

void DiskStore::Impl::expect_slot(const DiskSlot& slot) const {
  const std::lock_guard lock(mutex_);
  if (extents_.holds(slot.offset, whole_blocks(slot.bytes))) return;
  throw std::logic_error(name() + "there is no slot of " + std::to_string(slot.bytes) +
                         " bytes at offset " + std::to_string(slot.offset) + ": used once freed?");
}

void DiskStore::Impl::free(const DiskSlot& slot) {
  if (slot.bytes == 0) return;
  expect_slot(slot);
  give_back(slot.offset, whole_blocks(slot.bytes), return_ == Return::kPunch,
            return_ == Return::kTruncate);
}

// The hole is punched before the release, because afterwards the extent may belong to another slot.
// The file is cut under the lock, so the next reservation lies beyond the cut.
void DiskStore::Impl::give_back(std::int64_t offset, std::int64_t bytes, bool punch, bool cut) {
  const bool punched = !punch || file_->punch(offset, bytes);
  const std::lock_guard lock(mutex_);
  extents_.release(offset, bytes);
  const bool shorter = cut && extents_.end() < length_;
  const bool done = !shorter || file_->truncate(extents_.end());
  if (shorter && done) length_ = extents_.end();
  usage_.failed_returns += punched && done ? 0 : 1;
}

std::int64_t DiskStore::Impl::in_place(const DiskSlot& slot, const void* pointer) const {
  if (!file_->direct()) return slot.bytes;
  if (!is_aligned(pointer, file_->memory_alignment())) return 0;
  return slot.bytes / kBlockBytes * kBlockBytes;
}

std::uint64_t DiskStore::Impl::send(const DiskSlot& slot, const void* from) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  Checksum checksum;
  std::int64_t done = in_place(slot, from);
  checksum.add(bytes, done);
  file_->write(slot.offset, bytes, done);
  if (done < slot.bytes) {
    const BouncePool::Lease bounce(bounces_);
    while (done < slot.bytes) {
      const std::int64_t piece = std::min(BouncePool::kBytes, slot.bytes - done);
      const std::int64_t blocks = whole_blocks(piece);
      std::memcpy(bounce.data(), bytes + done, size(piece));
      std::memset(bounce.data() + piece, 0, size(blocks - piece));
      checksum.add(bounce.data(), piece);
      file_->write(slot.offset + done, bounce.data(), blocks);
      done += piece;
    }
  }
  file_->uncache_written(slot.offset, whole_blocks(slot.bytes));
  return checksum.value();
}

std::uint64_t DiskStore::Impl::fetch(const DiskSlot& slot, void* to) {
  auto* const bytes = static_cast<std::byte*>(to);
  Checksum checksum;
  std::int64_t done = in_place(slot, to);
  file_->read(slot.offset, bytes, done);
  checksum.add(bytes, done);
  if (done < slot.bytes) {
    const BouncePool::Lease bounce(bounces_);
    while (done < slot.bytes) {
      const std::int64_t piece = std::min(BouncePool::kBytes, slot.bytes - done);
      file_->read(slot.offset + done, bounce.data(), whole_blocks(piece));
      std::memcpy(bytes + done, bounce.data(), size(piece));
      checksum.add(bytes + done, piece);
      done += piece;
    }
  }
  file_->uncache_read(slot.offset, whole_blocks(slot.bytes));
  return checksum.value();
}

void DiskStore::Impl::write(DiskSlot& slot, const void* from) {
  slot.checksum.reset();
  std::uint64_t sum = 0;
  if (slot.bytes > 0) expect_slot(slot);
  try {
    sum = send(slot, from);
  } catch (const FileFailure& failure) {
    fail(failure, slot.bytes);
  }
  const std::lock_guard lock(mutex_);
  slot.checksum = sum;
  ++usage_.writes;
  usage_.written_bytes += slot.bytes;
}

void DiskStore::Impl::read(const DiskSlot& slot, void* to) {
  if (!slot.checksum) {
    throw std::logic_error(name() + "a read of a slot that was not written, at offset " +
                           std::to_string(slot.offset));
  }
  std::uint64_t sum = 0;
  if (slot.bytes > 0) expect_slot(slot);
  try {
    sum = fetch(slot, to);
  } catch (const FileFailure& failure) {
    fail(failure, slot.bytes);
  }
  const std::lock_guard lock(mutex_);
  if (sum != *slot.checksum) {
    ++usage_.corrupt_reads;
    throw make_error<void>(DiskError(name() + "corrupt data: " + std::to_string(slot.bytes) +
                                     " bytes at offset " + std::to_string(slot.offset) +
                                     " were written with checksum " + hexadecimal(*slot.checksum) +
                                     " and read with " + hexadecimal(sum)));
  }
  ++usage_.reads;
  usage_.read_bytes += slot.bytes;
}

DiskUsage DiskStore::Impl::usage() const {
  const std::lock_guard lock(mutex_);
  DiskUsage usage = usage_;
  usage.slots = static_cast<std::int64_t>(extents_.taken().size());
  usage.in_use_bytes = extents_.taken_bytes();
  usage.claimed_bytes = claimed();
  usage.file_bytes = extents_.end();
  if (file_) {
    usage.direct = file_->direct();
    usage.preallocates = file_->preallocates();
    usage.punches_holes = file_->punches_holes();
  }
  return usage;
}

DiskStore::DiskStore(DiskOptions options, std::shared_ptr<DiskIo> io)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(io))) {}
DiskStore::~DiskStore() = default;

DiskSlot DiskStore::allocate(std::int64_t bytes) { return impl_->allocate(bytes); }
void DiskStore::free(const DiskSlot& slot) noexcept { impl_->free(slot); }
void DiskStore::write(DiskSlot& slot, const void* from) { impl_->write(slot, from); }
void DiskStore::read(const DiskSlot& slot, void* to) { impl_->read(slot, to); }
DiskUsage DiskStore::usage() const { return impl_->usage(); }

std::int64_t DiskStore::buffer_alignment() const noexcept {
  return impl_->file()->memory_alignment();
}

const std::filesystem::path& DiskStore::directory() const noexcept {
  return impl_->options().directory;
}

}  // namespace ferry::real
