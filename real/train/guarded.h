// Turns the errors of a program that uses LibTorch into exit codes (exit_code.h) and a line on
// stderr.
#pragma once

#include <functional>
#include <stdexcept>

namespace ferry::real::train {

// The machine lacks something that the command needs: exit code 7.
class ResourceMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs it and returns its exit code, or that of the exception. `command`: the program to ask for
// help in a message about a wrong command line, such as "ferry train". If the result cannot be
// written (a full disk, a closed pipe), that is an error, too.
int guarded(const char* command, const std::function<int()>& run);

// Throws ResourceMissing if LibTorch finds no GPU.
void require_cuda();

}  // namespace ferry::real::train
