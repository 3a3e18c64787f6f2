// What a program of LibTorch's does with errors: each kind has its exit code (exit_code.h), and a
// line on stderr.
#pragma once

#include <functional>
#include <stdexcept>

namespace ferry::real::train {

// What the command needs is not here: exit code 7.
class ResourceMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs it and returns its exit code, or that of what it throws. `command` is who should be asked
// for help where the command line is not understood: "ferry train". A result that did not reach its
// file is no result (a full disk, a closed pipe).
int guarded(const char* command, const std::function<int()>& run);

// Throws ResourceMissing  where LibTorch finds no GPU.
void require_cuda();

}  // namespace ferry::real::train
