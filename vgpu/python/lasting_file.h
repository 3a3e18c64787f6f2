// A file whose text is there as soon as it is appended, even if the process is killed right after:
// the text is written to a shared mapping of the file, which the system keeps, and costs no call.
//
// The file is longer than its text while it is appended to: zeros follow, which `settle` cuts off,
// and otherwise whoever reads it (vgpu/run/ending.h). A forked child must not append.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::vgpu {

class LastingFile {
 public:
  // Makes the file, or empties it. Throws std::system_error if it cannot be written.
  explicit LastingFile(const std::string& path);
  ~LastingFile();
  LastingFile(const LastingFile&) = delete;
  LastingFile& operator=(const LastingFile&) = delete;

  // Throws std::system_error, of a full disk say.
  void append(std::string_view text);
  // The file is as long as its text, until more is appended. Throws std::system_error.
  void settle();

 private:
  void map_next();
  void unmap();

  int file_;
  std::uint64_t begin_ = 0;  // of the window, in the file
  char* window_ = nullptr;   // null: none is mapped
  std::size_t used_ = 0;     // of the window, in bytes
};

}  // namespace ferry::vgpu
