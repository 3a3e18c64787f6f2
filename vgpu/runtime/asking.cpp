#include "vgpu/runtime/asking.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace ferry::vgpu {

void note_asking() {
  static std::atomic<::pid_t> noted = 0;  // a forked child inherits this and has another number
  const ::pid_t self = ::getpid();
  const char* const path = std::getenv("FERRY_VIRTUAL_GPU_ASKING");
  if (path == nullptr || noted.exchange(self) == self) return;
  // No O_CREAT: the file is gone once the run has ended, and must not come back.
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line = std::to_string(self) + "\n";
  // A failed write is ignored: this process is not the one that reads the file.
  [[maybe_unused]] const ::ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace ferry::vgpu
