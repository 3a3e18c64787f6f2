#include "cli/sweep/children.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace ferry::cli {
namespace {

constexpr std::size_t kMostOut = std::size_t{1} << 24;
constexpr std::size_t kMostErr = std::size_t{1} << 12;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe");
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take_reader() { return std::exchange(ends[0], -1); }
  int writer() const { return ends[1]; }
};

// Runs in the child after fork. It calls nothing that may wait for a lock: the thread that holds
// the lock does not exist here.
[[noreturn]] void become(char* const* argv, const char* program, pid_t parent, int out, int err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before prctl took effect
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) {
    ::_exit(127);
  }
  ::execv(program, argv);
  constexpr char kMessage[] = "cannot run the program\n";
  [[maybe_unused]] const auto written = ::write(2, kMessage, sizeof kMessage - 1);
  ::_exit(127);
}

// Reads what the pipe has, and appends up to `most` bytes in all. Closes the pipe at its end.
void drain(int& pipe, std::string& text, std::size_t most) {
  std::array<char, 1 << 14> bytes;
  while (pipe >= 0) {
    const ssize_t count = ::read(pipe, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      ::close(std::exchange(pipe, -1));
      return;
    }
    text.append(bytes.data(), std::min(static_cast<std::size_t>(count), most - text.size()));
  }
}

}  // namespace

void Children::start(std::uint64_t number, const std::vector<std::string>& command,
                     std::chrono::milliseconds limit) {
  Pipe out, err;
  std::string name = "ferry";
  std::vector<char*> argv = {name.data()};
  std::vector<std::string> arguments(command.begin() + 1, command.end());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  running_.reserve(running_.size() + 1);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) fail("cannot start a process");
  if (process == 0)
    become(argv.data(), command.front().c_str(), parent, out.writer(), err.writer());
  ::setpgid(process, process);  // parent and child both do this: either may run first
  Running child;
  child.end.number = number;
  child.process = process;
  child.out = out.take_reader();
  child.err = err.take_reader();
  for (const int pipe : {child.out, child.err}) ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  if (limit.count() > 0) child.deadline = Clock::now() + limit;
  running_.push_back(std::move(child));
}

void Children::read(Running& child) {
  drain(child.out, child.end.out, kMostOut);
  drain(child.err, child.end.err, kMostErr);
}

std::vector<ChildEnd> Children::wait(std::chrono::milliseconds most) {
  Clock::time_point until = Clock::now() + most;
  std::vector<pollfd> pipes;
  bool closing = false;
  for (const Running& child : running_) {
    until = std::min(until, child.deadline);
    for (const int pipe : {child.out, child.err}) {
      if (pipe >= 0) pipes.push_back({pipe, POLLIN, 0});
    }
    closing |= child.out < 0 && child.err < 0;
  }
  if (closing) until = std::min(until, Clock::now() + std::chrono::milliseconds(1));
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  ::poll(pipes.data(), pipes.size(), static_cast<int>(std::max<std::int64_t>(pause, 0)));

  std::vector<ChildEnd> ended;
  for (Running& child : running_) {
    read(child);
    if (!child.end.late && Clock::now() >= child.deadline) {
      child.end.late = true;
      ::kill(-child.process, SIGKILL);
    }
    if (::waitpid(child.process, &child.end.status, WNOHANG) != child.process) continue;
    ::kill(-child.process, SIGKILL);  // the processes that it started
    read(child);
    for (const int pipe : {child.out, child.err}) {
      if (pipe >= 0) ::close(pipe);
    }
    // A child that ended by itself just before the kill is not late.
    child.end.late &= WIFSIGNALED(child.end.status) && WTERMSIG(child.end.status) == SIGKILL;
    child.process = 0;
    ended.push_back(std::move(child.end));
  }
  std::erase_if(running_, [](const Running& child) { return child.process == 0; });
  return ended;
}

void Children::kill() {
  for (const Running& child : running_) ::kill(-child.process, SIGKILL);
  for (const Running& child : running_) {
    while (::waitpid(child.process, nullptr, 0) < 0 && errno == EINTR) {
    }
    for (const int pipe : {child.out, child.err}) {
      if (pipe >= 0) ::close(pipe);
    }
  }
  running_.clear();
}

}  // namespace ferry::cli
