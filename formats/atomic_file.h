// Writes files completely or not at all.
//
// The bytes go to a file without a name in the target's folder (O_TMPFILE). The file is synced,
// gets a name, and is renamed over the target. So a reader, or a crash, sees the old file or the
// new one. Before that, the kernel frees the bytes when the process ends, for whatever reason. On a
// file system without O_TMPFILE, a temporary file with a name is used. It is removed after an
// exception or on a full disk, but it stays if the process is killed. A symbolic link is followed.
// A target that is no regular file (a device, a pipe) cannot be replaced, and is written directly.
// The folder is not synced, so after a power cut the old file may be back.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string_view>

namespace ferry {

class AtomicFile {
 public:
  // All functions throw std::system_error if the machine fails (a full disk, a missing folder).
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();  // removes the temporary unless commit() succeeded
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();  // call it once; nothing may be written after it

 private:
  [[noreturn]] void fail(const char* what) const;
  void open_unnamed();
  void open_named();
  void give_name();

  std::filesystem::path target_;
  std::filesystem::path place_;      // the target after its symbolic links
  std::filesystem::path temporary_;  // the temporary file's name, while it has one
  bool replaces_ = true;             // false: `place_` itself is written
  std::FILE* file_ = nullptr;
};

// Throws std::system_error if `target` is a folder, or if its folder does not exist. Call it before
// long work whose result goes there.
void require_folder_of(const std::filesystem::path& target);

void write_file(const std::filesystem::path& target, std::string_view content);

}  // namespace ferry
