// Converts the errors of a program that uses LibTorch to exit codes (exit_code.h) and a line on
// stderr.
#pragma once

#include <functional>
#include <stdexcept>

namespace ferry::real::train {

// The machine lacks something that the command needs. Exit code 7.
class ResourceMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Calls `run` and returns its exit code, or that of its exception. `command`, such as "ferry
// train", is the program to name in a message about a wrong command line. It is also an error if
// the output cannot be written, as on a full disk or a closed pipe.
int guarded(const char* command, const std::function<int()>& run);

// Throws ResourceMissing if LibTorch finds no GPU.
void require_cuda();

}  // namespace ferry::real::train
