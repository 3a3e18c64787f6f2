// Files that are written whole or not at all.
//
// The bytes go to a temporary file in the target's own folder (a rename across file systems is
// none), which is synced and then renamed over the target: a reader, or a crash, sees the old file
// or the new one. Whatever fails, an exception or a full disk, the temporary is removed and the
// target is as it was. A symbolic link is followed. A target that is no file (a device, a pipe)
// cannot be replaced: it is written to directly. Not modelled: syncing the folder, so a power cut
// may bring the old file back.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string_view>

namespace ferry {

class AtomicFile {
 public:
  // Throws std::system_error if the machine fails, like all functions below.
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();  // removes the temporary unless commit() succeeded
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();  // call it once; nothing is written after it

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path target_;
  std::filesystem::path place_;      // the end of the target's links
  std::filesystem::path temporary_;  // empty: `place_` itself is written
  std::FILE* file_ = nullptr;
};

// Call it before long work: throws std::system_error if `target` is a folder, or would be in a
// folder that does not exist.
void require_folder_of(const std::filesystem::path& target);

void write_file(const std::filesystem::path& target, std::string_view content);

}  // namespace ferry
