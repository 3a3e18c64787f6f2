// Reports a crash of a scheduler under test: in which program it happened, and how to repeat it.
//
// A scheduler crashes, for example, when a device call fails inside a destructor: an exception that
// leaves a destructor calls std::terminate, and no run can catch that.
#pragma once

#include <string>

namespace ferry::verify {

// While it lives, a signal that ends the process (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) first
// writes "the scheduler crashed in program N", and `again` followed by N, to stderr. If the
// crashing thread works on no program (campaign/at_work.h), nothing is written. Either way the
// earlier handlers are restored and get the signal. The destructor restores them, too. Only one
// object may live at a time.
class TellsCrashes {
 public:
  // again: "./mine --seed 4 --only "
  explicit TellsCrashes(const std::string& again);
  TellsCrashes(const TellsCrashes&) = delete;
  TellsCrashes& operator=(const TellsCrashes&) = delete;
  ~TellsCrashes();
};

}  // namespace ferry::verify
