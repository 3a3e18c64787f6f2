// The exit codes. They are those of the `ferry` program, whose header cannot be included here (a
// test compares them), and those of a stopped run.
//
// After Ctrl-C (or SIGTERM) the step is finished, and the state is saved if --save was given. The
// exit code is then 128 + the number of the signal (130, 143), as a shell reports it for a program
// that the signal ended. So a script does not take half a training for a whole one.
#pragma once

namespace ferry::real::train {

enum ExitCode : int {
  kOk = 0,
  kUsage = 2,            // usage, or bad input
  kDoesNotFit = 3,       // out of memory
  kResourceMissing = 7,  // no GPU, no room on the disk, a file that cannot be written
  kInternal = 70,        // a bug in Ferry or LibTorch (EX_SOFTWARE of sysexits.h)
  kStopped = 128,        // plus the number of the signal
};

}  // namespace ferry::real::train
