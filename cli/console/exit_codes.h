// The exit status of the program; it means the same for every subcommand.
#pragma once

namespace ferry::cli {

enum ExitCode : int {
  kOk = 0,
  kViolated = 1,         // a property is violated: a race, a step that ends with an error
  kUsage = 2,            // usage, or bad input
  kDoesNotFit = 3,       // in the budget, in the simulator's limits, or in this machine's memory
  kDiffers = 6,          // simulated and real decisions differ
  kResourceMissing = 7,  // no GPU, a build without LibTorch, a full disk
  kNotJudged = 8,        // the request could not be judged, or only a part of it
  kInternal = 70,        // a bug in Ferry (EX_SOFTWARE in sysexits.h)
  kStoppedBase = 128,    // plus the signal's number: stopped by the user (130: Ctrl-C)
};

}  // namespace ferry::cli
