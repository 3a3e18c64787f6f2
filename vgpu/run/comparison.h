// Runs the same script in several settings, for `ferry run` with several cards, policies,
// allocators or seeds, and makes a table of what each run needs and takes. Each row of the table is
// a run of its own, in a process of its own.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vgpu/run/one_run.h"
#include "vgpu/run/options.h"

namespace ferry::vgpu {

struct Row {
  Setting setting;
  Run run;

  bool out_of_memory() const;
  // The script's exit status is not 0, for another reason than the card's memory.
  bool failed() const;
};

// Runs the script once in each setting, one run after another. Races are printed. What a script
// prints is not shown, except the last lines if it failed. If a signal ends a script, such as
// Ctrl-C, the settings after it are left out.
std::vector<Row> compare(const Options& options, const std::filesystem::path& libraries);

// Leaves out the columns of allocator and seed if no row has one.
std::string to_table(const std::vector<Row>& rows);
// Returns an object with an array "rows"; each row has its setting, its verdict and what was
// simulated.
nlohmann::ordered_json to_json(const std::vector<Row>& rows);
// Returns the status of the first script that failed, or kViolated if a run has a race, or
// kNotJudged if a run had to be judged and was not. Otherwise returns kOk: out of memory is an
// answer.
int exit_code(const std::vector<Row>& rows);
// Returns the last line, such as "6 of 6 runs were judged in whole: 0 violations".
std::string verdict_of(const std::vector<Row>& rows);

}  // namespace ferry::vgpu
