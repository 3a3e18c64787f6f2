// The command-line program that tests a user's schedulers. It reads the command line, runs a hunt
// for each scheduler (hunt.h), and prints the reports. The user's main() calls hunt_main().
#pragma once

#include <vector>

#include "verify/hunted/hunted.h"

namespace ferry::verify {

// Tests the schedulers that the command line names, or all of them, one after the other, and prints
// the results. `--help` lists the options. Returns the exit code: 0 if no oracle objects, 1 if one
// does, 2 if the command line is wrong, and a higher code if a signal or an error ends the program.
int hunt_main(int argc, char** argv, const std::vector<HuntedScheduler>& schedulers);

}  // namespace ferry::verify
