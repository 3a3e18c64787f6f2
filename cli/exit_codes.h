// What the program's exit status says; the same for every subcommand.
#pragma once

namespace ferry::cli {

enum ExitCode : int {
  kOk = 0,
  kViolated = 1,         // a property is violated
  kUsage = 2,            // usage, or bad input
  kDoesNotFit = 3,       // the table is printed all the same
  kDiffers = 6,          // simulated and real decisions differ
  kResourceMissing = 7,  // no GPU, or a build without LibTorch
};

}  // namespace ferry::cli
