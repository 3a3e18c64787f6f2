#include "cli/console/stop.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "cli/console/messages.h"
#include "formats/stop_signal.h"

namespace ferry::cli {

void listen_for_stop() {
  listen_for_stop_signal("\r\033[Kferry: stopping; press Ctrl-C again to stop at once\n");
}

bool is_stopped() { return stop_signal() != 0; }

ExitCode told_stopped(std::string_view done) {
  const int signal = stop_signal();
  tell("stopped by {} after {}", signal == SIGTERM ? "SIGTERM" : "SIGINT", done);
  return static_cast<ExitCode>(kStoppedBase + signal);
}

StoppableInput::StoppableInput() : bytes_(std::size_t{1} << 18) {}

StoppableInput::int_type StoppableInput::underflow() {
  // A signal that comes between the check and the wait is noticed after this time.
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
