// How far a long command is: one line on stderr, where that is a terminal, and gone at the end.
// Nothing of it on a pipe; no colour under NO_COLOR.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ferry::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Drawn some ten times a second, however often it is called. `all` is 0 where it is not known.
  void show(std::uint64_t done, std::uint64_t all, std::string_view what);
  // Before anything else is said.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool colour_;
  std::optional<Clock::time_point> drawn_;
};

}  // namespace ferry::cli
