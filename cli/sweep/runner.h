// Runs the items of a sweep that are not done yet, each in a child process or on another rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/ranks/ranks.h"
#include "cli/sweep/item.h"
#include "cli/sweep/results_file.h"

namespace ferry::cli {

struct RunOptions {
  std::size_t jobs = 1;                            // children at a time, on each rank
  std::chrono::milliseconds limit{0};              // time limit of each child; 0: none
  std::function<bool()> stop;                      // called often; true ends the run
  std::function<void(std::size_t done)> progress;  // gets the number of items done
};

// Returns the command that starts this program with these arguments. It is the file that is running
// now, even if a new build has replaced it.
std::vector<std::string> command_of(std::vector<std::string> arguments);

// Runs the items `to_do` and adds them to the results in the order in which they end. `ranks` are
// the other ranks that help; null if there are none.
void run_items(const Items& items, const std::vector<std::size_t>& to_do, ResultsFile& results,
               const RunOptions& options, Ranks* ranks);

}  // namespace ferry::cli
