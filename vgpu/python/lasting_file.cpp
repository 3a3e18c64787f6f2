#include "vgpu/python/lasting_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace ferry::vgpu {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 20;  // whole pages, so that each can be mapped

[[noreturn]] void fail_to(const char* what, int error) {
  throw std::system_error(error, std::generic_category(), std::string("the stream log: ") + what);
}

}  // namespace

LastingFile::LastingFile(const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_ < 0) throw std::system_error(errno, std::generic_category(), "cannot write " + path);
}

LastingFile::~LastingFile() {
  try {
    settle();
  } catch (const std::system_error&) {  // zeros stay; a reader cuts them off
  }
  ::close(file_);
}

void LastingFile::append(std::string_view text) {
  while (!text.empty()) {
    if (window_ == nullptr || used_ == kWindow) map_next();
    const std::size_t fits = std::min(text.size(), kWindow - used_);
    std::memcpy(window_ + used_, text.data(), fits);
    used_ += fits;
    text.remove_prefix(fits);
  }
}

void LastingFile::settle() {
  if (window_ == nullptr) return;
  unmap();
  if (::ftruncate(file_, static_cast<off_t>(begin_ + used_)) != 0) fail_to("cannot cut it", errno);
}

// Allocates the disk's blocks first: writing to a mapping of a full disk would end the process.
void LastingFile::map_next() {
  unmap();
  const std::uint64_t text = begin_ + used_;
  begin_ = text / kWindow * kWindow;
  used_ = static_cast<std::size_t>(text - begin_);
  const auto offset = static_cast<off_t>(begin_);
  if (const int error = ::posix_fallocate(file_, offset, kWindow); error != 0) {
    fail_to("cannot write it", error);
  }
  void* const window = ::mmap(nullptr, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (window == MAP_FAILED) fail_to("cannot map it", errno);
  window_ = static_cast<char*>(window);
}

void LastingFile::unmap() {
  if (window_ != nullptr) ::munmap(window_, kWindow);
  window_ = nullptr;
}

}  // namespace ferry::vgpu
