// Child processes, several at a time, and how each ended.
//
// An item of a sweep runs in one, so that a crash, an abort or a time limit costs its item alone.
// Each has a process group of its own: Ctrl-C on the terminal is the sweep's to hear, and what a
// child started ends with it. The kernel kills a child whose sweep is killed. Between fork and exec
// nothing is called that a process with other threads (an MPI library's) must not call there.
// One thread alone may use it. Not bounded: a child's memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::cli {

struct ChildEnd {
  std::uint64_t number = 0;  // whose
  std::string out;           // what it wrote, up to a bound
  std::string err;
  int status = 0;     // as waitpid tells it
  bool late = false;  // it was killed at the time limit
};

class Children {
 public:
  using Clock = std::chrono::steady_clock;

  Children() = default;
  ~Children() { kill(); }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // The first argument is the program's file; argv[0] is "ferry". `limit`: 0 is none. Throws
  // std::system_error where the machine has no process for it; a program that is not there is a
  // child that ends with 127.
  void start(std::uint64_t number, const std::vector<std::string>& command,
             std::chrono::milliseconds limit);
  std::size_t running() const { return running_.size(); }
  // Those that ended; waits at most so long for the first one.
  std::vector<ChildEnd> wait(std::chrono::milliseconds most);
  // Ends all of them; nobody is told of these.
  void kill();

 private:
  struct Running {
    ChildEnd end;
    pid_t process = 0;
    int out = -1;  // its pipes, until their end
    int err = -1;
    Clock::time_point deadline = Clock::time_point::max();
  };

  void read(Running& child);

  std::vector<Running> running_;
};

}  // namespace ferry::cli
