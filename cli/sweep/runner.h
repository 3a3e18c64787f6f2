// Runs the items of a sweep that are not done yet, each in a child process.
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
  std::size_t jobs = 1;                            // children at a time, of each rank
  std::chrono::milliseconds limit{0};              // of each; 0: none
  std::function<bool()> stop;                      // asked all the time; true ends the run
  std::function<void(std::size_t done)> progress;  // so many of those that were to do
};

// The program that runs, with these arguments: its own file, even where another was built over it.
std::vector<std::string> command_of(std::vector<std::string> arguments);

// Adds them to the results, in the order in which they end. `ranks`: others that help; null: none.
void run_items(const Items& items, const std::vector<std::size_t>& to_do, ResultsFile& results,
               const RunOptions& options, Ranks* ranks);

}  // namespace ferry::cli
