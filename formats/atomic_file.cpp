#include "formats/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace ferry {

namespace {

std::string by_descriptor(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  namespace fs = std::filesystem;
  constexpr int kLinksMax = 40;  // the system has the same limit
  place_ = target_;
  // A link to a pipe or a terminal, such as /dev/stdout, need not lead to an existing path.
  for (int i = 0; i < kLinksMax && fs::is_symlink(place_) && !fs::is_other(place_); ++i) {
    place_ = place_.parent_path() / fs::read_symlink(place_);
  }
  if (fs::is_other(place_)) {
    replaces_ = false;
    file_ = std::fopen(place_.c_str(), "wb");
  } else {
    open_unnamed();
    if (file_ == nullptr) open_named();
  }
  if (file_ == nullptr) fail("cannot write");
}

// Leaves `file_` null if the file system has no files without a name, or if /proc is not mounted,
// which is needed to name them.
void AtomicFile::open_unnamed() {
  const std::filesystem::path folder = place_.has_parent_path() ? place_.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return;
  if (::access(by_descriptor(descriptor).c_str(), F_OK) == 0) file_ = ::fdopen(descriptor, "wb");
  if (file_ == nullptr) ::close(descriptor);
}

void AtomicFile::open_named() {
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
  }
}

// Gives the file a new name, because linkat cannot replace the target.
void AtomicFile::give_name() {
  const std::string from = by_descriptor(::fileno(file_));
  for (int i = 0; temporary_.empty(); ++i) {
    const std::string name =
        place_.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(i);
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
    } else if (errno != EEXIST) {
      fail("cannot create a file beside");
    }
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
  if (replaces_ && ::fsync(::fileno(file_)) != 0) fail("cannot write");
  if (replaces_) give_name();
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("cannot write");
  if (!replaces_) return;
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
