// The exceptions for a request that cannot be met: wrong input (with file, line, and what was
// expected), and a run beyond the simulator's limits.
//
// Readers and checkers throw InputError before they change anything; cli/ prints what() and exits
// with kUsage. Line 0 means the whole file. Failures of the machine (a full disk) are
// std::system_error, as in the standard library.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace ferry {

class InputError : public std::runtime_error {
 public:
  // what() is "FILE:LINE: MESSAGE"; the message says what was expected.
  InputError(std::string file, std::uint64_t line, const std::string& message)
      : std::runtime_error(
            file + (line == 0 ? std::string() : std::string(":").append(std::to_string(line))) +
            ": " + message),
        file_(std::move(file)),
        line_(line) {}

  const std::string& file() const { return file_; }
  std::uint64_t line() const { return line_; }

 private:
  std::string file_;
  std::uint64_t line_;
};

// A run exceeds the simulator's addresses, time or work (formats/limits.h).
class LimitReached : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ferry
