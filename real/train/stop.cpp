#include "real/train/stop.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace ferry::real::train {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

volatile std::sig_atomic_t g_stop_signal = 0;
bool g_listening[2] = {};

// It calls only what a signal handler may call.
extern "C" void ferry_train_stop(int signal) {
  const int saved_errno = errno;
  g_stop_signal = signal;
  for (std::size_t i = 0; i < 2; ++i) {
    if (g_listening[i]) std::signal(kSignals[i], SIG_DFL);
  }
  if (isatty(STDERR_FILENO) != 0) {
    constexpr char kText[] = "\nferry: stopping after this step; once more to stop at once\n";
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
    ours.sa_handler = ferry_train_stop;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

int stop_signal() { return g_stop_signal; }

}  // namespace ferry::real::train
