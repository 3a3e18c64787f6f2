#include "formats/stop_signal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace ferry {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<int> g_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // for a signal handler
const char* g_text = "";
bool g_listening[2] = {};

// Calls only functions that are safe in a signal handler.
extern "C" void ferry_stop(int signal) {
  const int saved_errno = errno;
  g_signal = signal;
  for (std::size_t i = 0; i < 2; ++i) {
    if (g_listening[i]) std::signal(kSignals[i], SIG_DFL);
  }
  if (isatty(STDERR_FILENO) != 0) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, g_text, std::strlen(g_text));
  }
  errno = saved_errno;
}

}  // namespace

void listen_for_stop_signal(const char* text) {
  g_text = text;
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

int stop_signal() { return g_signal; }

}  // namespace ferry
