#include "cli/console/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace ferry::cli {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = no_colour == nullptr || *no_colour == '\0';
}

void ProgressLine::show(std::uint64_t done, std::uint64_t all, std::string_view what) {
  constexpr std::uint64_t kWidth = 20;
  constexpr std::chrono::milliseconds kPause(100);
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - *drawn_ < kPause) return;
  drawn_ = now;
  if (all == 0) {
    fmt::print(stderr, "\r{} {}\033[K", done, what);
  } else {
    const std::string bar(static_cast<std::size_t>(std::min(kWidth * done / all, kWidth)), '#');
    fmt::print(stderr, "\r{}{:.<{}}{} {}/{}  {}\033[K", colour_ ? "\033[32m" : "", bar, kWidth,
               colour_ ? "\033[0m" : "", done, all, what);
  }
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_.reset();
}

}  // namespace ferry::cli
