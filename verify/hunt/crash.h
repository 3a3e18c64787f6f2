// Tells a crash of a hunted scheduler: the program in which it happened, and how to see it again.
// An exception that leaves a destructor, as a call of the device that fails there throws one, ends
// in std::terminate, which is no exception that a run could catch.
#pragma once

#include <string>

namespace ferry::verify {

// While it lives, a signal that ends the process (SIGABRT, SIGSEGV and their kind) writes "in
// program N", and `again` with that number, to stderr first. One at a time; it restores what was
// there.
class TellsCrashes {
 public:
  // again: "./mine --seed 4 --only "
  explicit TellsCrashes(const std::string& again);
  TellsCrashes(const TellsCrashes&) = delete;
  TellsCrashes& operator=(const TellsCrashes&) = delete;
  ~TellsCrashes();
};

}  // namespace ferry::verify
