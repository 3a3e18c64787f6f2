// Shows the progress of a long command in one line on stderr, and removes the line at the end.
// Prints nothing if stderr is not a terminal, and no colour if NO_COLOR is set.
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

  // Redraws at most about ten times a second, however often it is called. `all` is 0 if unknown.
  void show(std::uint64_t done, std::uint64_t all, std::string_view what);
  // Call it before printing anything else.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool colour_;
  std::optional<Clock::time_point> drawn_;
};

}  // namespace ferry::cli
