// System calls that fail on demand, the rest real: what the tests of the disk tier bend.
//
// Switches describe a poorer file system and hold for good. The queues (next_writes and its kin)
// hold what the next calls do, one entry a call; where a queue is empty the call is the real one.
// The queues are guarded by a mutex, so threads may call; the rest is set while the store opens.
#pragma once

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real/disk/disk_io.h"
#include "real/disk/extents.h"

namespace ferry::real {

struct Bend {
  int error = 0;           // fail with this errno
  std::int64_t most = -1;  // transfer no more than this
};
inline constexpr Bend kAsIs{};
inline Bend failing(int error) { return {.error = error}; }
inline Bend shortened(std::int64_t most) { return {.most = most}; }

class BentIo : public DiskIo {
 public:
  bool unnamed = true;
  bool directs = true;
  bool direct_writes = true;  // false: O_DIRECT is accepted, and refused by the write
  bool preallocates = true;
  bool holes = true;
  int file = -1;  // the store's, while it lives

  void next_writes(std::deque<Bend> bends) { set(writes_, std::move(bends)); }
  void next_reads(std::deque<Bend> bends) { set(reads_, std::move(bends)); }
  void next_preallocations(std::deque<Bend> bends) { set(preallocations_, std::move(bends)); }
  void next_punches(std::deque<Bend> bends) { set(punches_, std::move(bends)); }
  void next_truncations(std::deque<Bend> bends) { set(truncations_, std::move(bends)); }
  void next_write_backs(std::deque<Bend> bends) { set(write_backs_, std::move(bends)); }
  void next_opens(std::deque<Bend> bends) { set(opens_, std::move(bends)); }
  void next_unlinks(std::deque<Bend> bends) { set(unlinks_, std::move(bends)); }
  // Where memory came from or went to, since the last call of this.
  std::vector<const void*> pointers() {
    const std::lock_guard lock(mutex_);
    return std::exchange(pointers_, {});
  }

  int open_unnamed(const char* directory) override {
    if (fails(opens_)) return -1;
    return unnamed ? file = DiskIo::open_unnamed(directory) : refuse();
  }
  int open_named(char* name) override { return file = DiskIo::open_named(name); }
  int unlink(const char* name) override { return fails(unlinks_) ? -1 : DiskIo::unlink(name); }
  int close(int which) override {
    file = -1;
    return DiskIo::close(which);
  }
  int set_direct(int which, bool direct) override {
    return direct && !directs ? refuse(EINVAL) : DiskIo::set_direct(which, direct_ = direct);
  }
  ssize_t write_at(int which, const void* from, std::int64_t bytes, std::int64_t offset) override {
    if (direct_ && !direct_writes) return refuse(EINVAL);
    const auto most = transfer(writes_, from, bytes);
    if (most < 0) return -1;
    return std::min<ssize_t>(most, DiskIo::write_at(which, from, whole(most, bytes), offset));
  }
  ssize_t read_at(int which, void* to, std::int64_t bytes, std::int64_t offset) override {
    const auto most = transfer(reads_, to, bytes);
    if (most < 0) return -1;
    return std::min<ssize_t>(most, DiskIo::read_at(which, to, whole(most, bytes), offset));
  }
  int preallocate(int which, std::int64_t offset, std::int64_t bytes) override {
    if (!preallocates) return refuse();
    const Bend bend = next(preallocations_);
    // A real one may have claimed a part by the time it fails.
    if (bend.most >= 0) DiskIo::preallocate(which, offset, bend.most);
    return bend.error != 0 ? refuse(bend.error) : DiskIo::preallocate(which, offset, bytes);
  }
  int punch_hole(int which, std::int64_t offset, std::int64_t bytes) override {
    if (fails(punches_)) return -1;
    return holes ? DiskIo::punch_hole(which, offset, bytes) : refuse();
  }
  int truncate(int which, std::int64_t bytes) override {
    return fails(truncations_) ? -1 : DiskIo::truncate(which, bytes);
  }
  int write_back(int which, std::int64_t offset, std::int64_t bytes) override {
    return fails(write_backs_) ? -1 : DiskIo::write_back(which, offset, bytes);
  }

 private:
  using Queue = std::deque<Bend>;

  static int refuse(int error = EOPNOTSUPP) {
    errno = error;
    return -1;
  }
  // Direct I/O moves whole blocks, of which less may be reported.
  std::int64_t whole(std::int64_t most, std::int64_t bytes) const {
    return direct_ ? std::min(whole_blocks(most), bytes) : most;
  }
  void set(Queue& queue, Queue bends) {
    const std::lock_guard lock(mutex_);
    queue = std::move(bends);
  }
  Bend next(Queue& queue) {
    const std::lock_guard lock(mutex_);
    if (queue.empty()) return kAsIs;
    const Bend bend = queue.front();
    queue.pop_front();
    return bend;
  }
  bool fails(Queue& queue) {
    const Bend bend = next(queue);
    return bend.error != 0 && refuse(bend.error) < 0;
  }
  // How many bytes to move, or -1 with errno.
  std::int64_t transfer(Queue& queue, const void* memory, std::int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      pointers_.push_back(memory);
    }
    const Bend bend = next(queue);
    if (bend.error != 0) return refuse(bend.error);
    return bend.most < 0 ? bytes : std::min(bend.most, bytes);
  }

  std::mutex mutex_;
  Queue writes_, reads_, preallocations_, punches_, truncations_, write_backs_, opens_, unlinks_;
  std::vector<const void*> pointers_;
  bool direct_ = false;
};

// A fresh empty directory, removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = on_a_disk() / "ferry-disk-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory " + name);
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  // A tmpfs is nothing but page cache: where temporary files are on one, the build is not.
  static std::filesystem::path on_a_disk() {
    const std::filesystem::path usual = std::filesystem::temp_directory_path();
    struct statfs status = {};
    const bool in_memory = ::statfs(usual.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
    return in_memory ? std::filesystem::current_path() : usual;
  }

  std::filesystem::path path_;
};

// `bytes` bytes, at `shift` from an address aligned to a page.
class Memory {
 public:
  explicit Memory(std::int64_t bytes, std::int64_t shift = 0)
      : bytes_(bytes), shift_(shift), memory_(static_cast<std::size_t>(bytes + shift) + kPage) {}
  Memory(std::int64_t bytes, std::int64_t shift, std::uint64_t seed) : Memory(bytes, shift) {
    for (std::int64_t i = 0; i < bytes_; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      data()[i] = static_cast<unsigned char>(seed >> 56);
    }
  }
  Memory(Memory&&) = default;  // a copy would be aligned elsewhere
  Memory& operator=(Memory&&) = default;
  unsigned char* data() {
    void* start = memory_.data();
    std::size_t space = memory_.size();
    return static_cast<unsigned char*>(
               std::align(kPage, static_cast<std::size_t>(bytes_ + shift_), start, space)) +
           shift_;
  }
  bool operator==(Memory& other) {
    return bytes_ == other.bytes_ && std::equal(data(), data() + bytes_, other.data());
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::int64_t bytes_;
  std::int64_t shift_;
  std::vector<unsigned char> memory_;
};

}  // namespace ferry::real
