// A program that this command started has printed an error and ended: this command ends with the
// same exit code and prints nothing more.
#pragma once

#include <exception>

#include "cli/console/exit_codes.h"

namespace ferry::cli {

class Ended final : public std::exception {
 public:
  explicit Ended(int code) : code_(static_cast<ExitCode>(code)) {}
  ExitCode code() const { return code_; }
  const char* what() const noexcept override { return "another program failed"; }

 private:
  ExitCode code_;
};

}  // namespace ferry::cli
