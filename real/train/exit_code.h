// The exit status: the numbers of the `ferry` program, which cannot be included from here (a test
// compares them), and those of a run that was asked to stop.
//
// After Ctrl-C (or SIGTERM) the step is finished and the state saved where that was asked for. The
// status is then 128 + the signal's number (130, 143), as a shell reports a program that the signal
// ended: a script that goes on after 0 does not take half a training for a whole one.
#pragma once

namespace ferry::real::train {

enum ExitCode : int {
  kOk = 0,
  kUsage = 2,            // usage, or bad input
  kDoesNotFit = 3,       // out of memory
  kResourceMissing = 7,  // no GPU, no room on the disk, a file that cannot be written
  kInternal = 70,        // a fault of Ferry's or of LibTorch's (EX_SOFTWARE of sysexits.h)
  kStopped = 128,        // plus the signal
};

}  // namespace ferry::real::train
