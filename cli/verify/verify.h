// The files of `ferry verify` share these.
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

// The subcommand, of ferry-verify.
void add_verify(CLI::App& app, Context& context);

inline constexpr int kSchema = 1;  // of what --json prints

struct VerifyArguments {
  std::int64_t programs = 0;  // 0: not said
  double seconds = 0;
  std::uint64_t seed = 0;
  bool small = false;
  std::optional<std::uint64_t> unusual;  // every way with at most so many
  std::optional<std::uint64_t> orders;   // every order, in at most so many runs of a program
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string canary;
  std::string resume;  // a file
  bool mutants = false;
  std::string mutant;
  bool schedulers = false;
  std::string scheduler;
  std::string replay;
  std::string hazard;  // a file that is written
  bool json = false;
  bool csv = false;
};

std::vector<std::string> mutant_words();  // without spaces
// Throws InputError with the option's name.
verify::Mutant mutant_of(const std::string& option, const std::string& word);
std::vector<std::string> scheduler_names();

verify::MatrixOptions matrix_options(const VerifyArguments& arguments);
verify::schedulers::SchedulerTableOptions scheduler_options(const VerifyArguments& arguments);

// Each prints, and returns the exit code. `ranks`: the others that help; null: none.
// Writes the run's hazard (formats/HAZARD.md), under the name of whose it is.
void write_hazard(const verify::RunSpec& spec, const std::string& path);
int hunt_mutant(const VerifyArguments& arguments);
int print_mutants(const VerifyArguments& arguments, Ranks* ranks);
int try_scheduler(const VerifyArguments& arguments);
int print_schedulers(const VerifyArguments& arguments, Ranks* ranks);

}  // namespace ferry::cli
