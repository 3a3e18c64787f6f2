// A command line on a terminal of its own: what is shown there, and Ctrl-C.
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ferry::cli {

class Terminal {
 public:
  // The shell becomes the command's program: begin with `exec`.
  explicit Terminal(const std::string& command) {
    child_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ < 0) throw std::runtime_error("no terminal");
    if (child_ != 0) return;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ~Terminal() {
    ::close(terminal_);
    if (child_ > 0) end();
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Reads until `text` was shown; false where the program ended before it was.
  bool shows(const std::string& text) {
    while (shown_.find(text) == std::string::npos) {
      if (!read_on()) return false;
    }
    return true;
  }
  void press_ctrl_c() {
    if (::write(terminal_, "\x03", 1) != 1) throw std::runtime_error("cannot write");
  }
  // Reads to the end; the exit code, or minus the signal that ended it.
  int end() {
    while (read_on()) {
    }
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const std::string& shown() const { return shown_; }
  pid_t process() const { return child_; }
  // Whether the program has a file of that folder open, with or without a name.
  bool has_open(const std::filesystem::path& folder) const {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::directory_iterator files("/proc/" + std::to_string(child_) + "/fd", error);
    for (; !error && files != fs::directory_iterator(); files.increment(error)) {
      const fs::path file = fs::read_symlink(files->path(), error);
      if (!error && file.string().starts_with(folder.string() + "/")) return true;
    }
    return false;
  }

 private:
  bool read_on() {
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count <= 0) return false;  // EIO: nobody has it open any more
    shown_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = 0;
  std::string shown_;
};

}  // namespace ferry::cli
