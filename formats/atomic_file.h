// Files that are written whole or not at all.
//
// The bytes go to a file without a name in the target's own folder (O_TMPFILE), which is synced,
// given a name, and renamed over the target (a rename across file systems is none): a reader, or a
// crash, sees the old file or the new one. Until then the kernel frees the bytes with the process,
// however that ends. A file system without such files gets a temporary file with a name: whatever
// fails, an exception or a full disk, it is removed, but a process that is killed leaves it.
// A symbolic link is followed. What is there and is no file (a device, a pipe) cannot be replaced:
// it is written as the bytes come. Not modelled: syncing the folder, so a power cut may bring the
// old file back.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string_view>

namespace ferry {

class AtomicFile {
 public:
  // Throws std::system_error, here and below, where the machine fails.
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();  // removes the temporary unless commit() succeeded
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();  // once; nothing is written after it

 private:
  [[noreturn]] void fail(const char* what) const;
  void open_unnamed();
  void open_named();
  void give_name();

  std::filesystem::path target_;
  std::filesystem::path place_;      // where its links lead
  std::filesystem::path temporary_;  // its name while it has one
  bool replaces_ = true;             // false: `place_` itself is written
  std::FILE* file_ = nullptr;
};

// Before long work, and not after it: throws std::system_error where `target` is a folder, or would
// be in one that there is not.
void require_folder_of(const std::filesystem::path& target);

void write_file(const std::filesystem::path& target, std::string_view content);

}  // namespace ferry
