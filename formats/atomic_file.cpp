#include "formats/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace ferry {

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  namespace fs = std::filesystem;
  constexpr int kLinksMax = 40;  // as the system's own limit
  place_ = target_;
  // A link to a pipe or a terminal, such as /dev/stdout, need not lead to an existing path.
  for (int i = 0; i < kLinksMax && fs::is_symlink(place_) && !fs::is_other(place_); ++i) {
    place_ = place_.parent_path() / fs::read_symlink(place_);
  }
  if (fs::is_other(place_)) {
    file_ = std::fopen(place_.c_str(), "wb");
    if (file_ == nullptr) fail("cannot write");
    return;
  }
  std::string pattern = place_.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(pattern.data());
  if (descriptor < 0) fail("cannot create a file beside");
  temporary_ = pattern;
  // mkstemp's mode is 0600; a result is as readable as the user's other files.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor, 0666 & ~mask) == 0) file_ = ::fdopen(descriptor, "wb");
  if (file_ == nullptr) {
    const int cause = errno;
    ::close(descriptor);
    ::unlink(temporary_.c_str());  // the destructor of a half-made object does not run
    errno = cause;
    fail("cannot write");
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  throw std::system_error(errno, std::generic_category(), what + (" " + target_.string()));
}

void AtomicFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("cannot write");
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0) fail("cannot write");
  if (!temporary_.empty() && ::fsync(::fileno(file_)) != 0) fail("cannot write");
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("cannot write");
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), place_.c_str()) != 0) fail("cannot rename a file to");
  temporary_.clear();
}

void require_folder_of(const std::filesystem::path& target) {
  if (std::filesystem::is_directory(target)) {
    throw std::system_error(std::make_error_code(std::errc::is_a_directory), target.string());
  }
  if (target.has_parent_path() && !std::filesystem::is_directory(target.parent_path())) {
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            "cannot create a file beside " + target.string());
  }
}

void write_file(const std::filesystem::path& target, std::string_view content) {
  AtomicFile file(target);
  file.write(content);
  file.commit();
}

}  // namespace ferry
