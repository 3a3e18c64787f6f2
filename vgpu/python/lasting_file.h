// A file whose text is safe as soon as it is appended, even if the process is killed right after.
// The log of a run is such a file (run_log.h), because a script may end in any way. The text is
// written to a shared mapping of the file. The system keeps the mapping, and writing to it needs no
// system call.
//
// While text is appended, the file is longer than its text: zeros follow. `settle` cuts them off,
// or else whoever reads the file (vgpu/run/ending.h). A forked child must not append.
//
// Nothing is synced, so a crash of the machine may lose text. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::vgpu {

class LastingFile {
 public:
  // Creates the file or empties it. Throws std::system_error if it cannot be written.
  explicit LastingFile(const std::string& path);
  ~LastingFile();
  LastingFile(const LastingFile&) = delete;
  LastingFile& operator=(const LastingFile&) = delete;

  // Throws std::system_error, for example if the disk is full.
  void append(std::string_view text);
  // Makes the file as long as its text, until more is appended. Throws std::system_error.
  void settle();

 private:
  void map_next();
  void unmap();

  int file_;
  std::uint64_t begin_ = 0;  // offset of the window in the file
  char* window_ = nullptr;   // null if no window is mapped
  std::size_t used_ = 0;     // bytes of the window that have text
};

}  // namespace ferry::vgpu
