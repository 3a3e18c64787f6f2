// The parts that the files of `ferry verify` share: the arguments, and one function for each mode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/console/context.h"
#include "cli/ranks/ranks.h"
#include "verify/campaign/run_spec.h"
#include "verify/core/matrix.h"
#include "verify/schedulers/scheduler_table.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// Adds the subcommand to the program ferry-verify.
void add_verify(CLI::App& app, Context& context);

inline constexpr int kSchema = 1;  // version of the output of --json

struct VerifyArguments {
  std::int64_t programs = 0;  // 0: not typed
  double seconds = 0;
  std::uint64_t seed = 0;
  bool small = false;
  std::optional<std::uint64_t> unusual;  // --every-way: the most unusual answers of a run
  std::optional<std::uint64_t> orders;   // --every-order: the most runs of a program
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string canary;
  std::string resume;  // the campaign's file
  bool mutants = false;
  std::string mutant;
  bool schedulers = false;
  std::string scheduler;
  std::string replay;
  std::string hazard;  // the file to write
  bool json = false;
  bool csv = false;
};

std::vector<std::string> mutant_words();  // names without spaces
// Throws InputError that names the option.
verify::Mutant mutant_of(const std::string& option, const std::string& word);
std::vector<std::string> scheduler_names();

verify::MatrixOptions matrix_options(const VerifyArguments& arguments);
verify::schedulers::SchedulerTableOptions scheduler_options(const VerifyArguments& arguments);

// Writes the run's hazard (formats/HAZARD.md), with the name of the scheduler that it is of.
void write_hazard(const verify::RunSpec& spec, const std::string& path);
// Each of these prints its result and returns the exit code. `ranks` are the other ranks that help;
// null if there are none.
int hunt_mutant(const VerifyArguments& arguments);
int print_mutants(const VerifyArguments& arguments, Ranks* ranks);
int try_scheduler(const VerifyArguments& arguments);
int print_schedulers(const VerifyArguments& arguments, Ranks* ranks);

}  // namespace ferry::cli
