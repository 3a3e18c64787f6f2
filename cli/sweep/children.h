// Runs child processes, several at a time, and reports how each ended.
//
// Each item of a sweep runs in its own child, so a crash, an abort or a time limit costs only that
// item. Each child has its own process group: Ctrl-C on the terminal reaches only the sweep, and
// the processes that a child started end with the child. The kernel kills the children of a sweep
// that is killed. Between fork and exec only calls are made that are safe in a process with other
// threads (those of an MPI library). Only one thread may use this class. The memory of a child is
// not limited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::cli {

struct ChildEnd {
  std::uint64_t number = 0;  // the one that start() got
  std::string out;           // stdout, up to a bound
  std::string err;           // stderr, up to a bound
  int status = 0;            // as from waitpid
  bool late = false;         // it was killed at the time limit
};

class Children {
 public:
  using Clock = std::chrono::steady_clock;

  Children() = default;
  ~Children() { kill(); }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Starts a child. The first argument is the program's file; argv[0] is "ferry". A `limit` of 0 is
  // no limit. Throws std::system_error if the machine cannot start a process. If the program does
  // not exist, the child ends with 127.
  void start(std::uint64_t number, const std::vector<std::string>& command,
             std::chrono::milliseconds limit);
  std::size_t running() const { return running_.size(); }
  // Returns the children that ended; waits at most this long for the first one.
  std::vector<ChildEnd> wait(std::chrono::milliseconds most);
  // Kills all children. wait() does not report them.
  void kill();

 private:
  struct Running {
    ChildEnd end;
    pid_t process = 0;
    int out = -1;  // the pipes; -1 once they are at their end
    int err = -1;
    Clock::time_point deadline = Clock::time_point::max();
  };

  void read(Running& child);

  std::vector<Running> running_;
};

}  // namespace ferry::cli
