// The program that hunts: what a user's main() returns.
#pragma once

#include <vector>

#include "verify/hunted/hunted.h"

namespace ferry::verify {

// Hunts the schedulers that the command line names, or all, one after the other, and prints what
// came of it; `--help` lists the options. Returns the exit code: 0, no oracle objects; 1, one does;
// 2, the command line is wrong.
int hunt_main(int argc, char** argv, const std::vector<HuntedScheduler>& schedulers);

}  // namespace ferry::verify
