#include "cli/stop.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace ferry::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<int> g_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // for a signal handler
bool g_listening[2] = {};

// It calls only what a signal handler may call.
extern "C" void ferry_stop(int signal) {
  const int saved_errno = errno;
  g_signal = signal;
  for (std::size_t i = 0; i < 2; ++i) {
    if (g_listening[i]) std::signal(kSignals[i], SIG_DFL);
  }
  if (isatty(STDERR_FILENO) != 0) {
    constexpr char kText[] = "\r\033[Kferry: stopping; once more to stop at once\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  errno = saved_errno;
}

}  // namespace

void listen_for_stop() {
  for (std::size_t i = 0; i < 2; ++i) {
    struct sigaction now {};
    sigaction(kSignals[i], nullptr, &now);
    if (now.sa_handler == SIG_IGN) continue;
    g_listening[i] = true;
    struct sigaction ours {};
    ours.sa_handler = ferry_stop;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

bool is_stopped() { return g_signal != 0; }

ExitCode told_stopped(std::string_view done) {
  const int signal = g_signal;
  spdlog::error("stopped by {} after {}", signal == SIGTERM ? "SIGTERM" : "SIGINT", done);
  return static_cast<ExitCode>(kStoppedBase + signal);
}

StoppableInput::StoppableInput() : bytes_(std::size_t{1} << 18) {}

StoppableInput::int_type StoppableInput::underflow() {
  // A signal between the question and the wait is noticed after so long.
  constexpr int kWaitMs = 100;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  for (;;) {
    if (is_stopped()) return traits_type::eof();
    const int ready = ::poll(&input, 1, kWaitMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(STDIN_FILENO, bytes_.data(), bytes_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "cannot read stdin");
    if (count == 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return traits_type::to_int_type(bytes_.front());
  }
}

std::streamsize StoppableInput::xsgetn(char* into, std::streamsize most) {
  if (gptr() == egptr() && traits_type::eq_int_type(underflow(), traits_type::eof())) return 0;
  const std::streamsize count = std::min<std::streamsize>(most, egptr() - gptr());
  std::memcpy(into, gptr(), static_cast<std::size_t>(count));
  gbump(static_cast<int>(count));
  return count;
}

}  // namespace ferry::cli
