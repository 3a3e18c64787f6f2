// The `ferry` program. To add a subcommand, write a file with its add_NAME, and add a line to
// commands.h and to kSubcommands.
#include <string_view>

#include "cli/commands.h"
#include "cli/console/program.h"
#include "cli/explain/command.h"
#include "cli/report/command.h"
#include "cli/sweep/command.h"

namespace {

using namespace ferry::cli;

// In the order of the help.
constexpr AddSubcommand kSubcommands[] = {
    add_plan,   add_report,  add_sweep,  add_simulate, add_train,    add_run,      add_calibrate,
    add_replay, add_explain, add_verify, add_check,    add_programs, add_hardware, add_completion,
};

// Options and values that were renamed, and the commands that still accept the old names.
constexpr ferry::OldName kOldNames[] = {
    {"--hardware", "--card"}, {"--chunks", "--microbatches"}, {"--order", "--schedule"}};
constexpr ferry::OldValue kOldValues[] = {{"--policy", "budget", "offload-some"}};
constexpr std::string_view kWithOldNames[] = {"plan", "simulate", "report", "replay"};

// The end of `ferry --help`. The help of each command has more examples.
constexpr const char* kFooter = R"(
Examples:
  ferry plan llama3-8b --card h100   compare policies, each simulated and checked
  ferry train gpt --policy offload   train a GPT with its activations offloaded
  ferry verify --seconds 60          test the scheduler core with random programs
  ferry check run.jsonl              find races in the stream log of any program
  ferry COMMAND --help               show the options of a command, with examples

A NAME is the name of a shipped file or the path of your own file. The environment variable
FERRY_SCENARIOS sets the folder of the shipped files.
Exit codes: 0 ok, 1 a property is violated, 2 wrong usage or input, 3 does not fit, 6 simulated and
real differ, 7 a resource is missing, 8 could not be judged (`ferry run`) or is not known (`ferry
explain`), 70 an internal error, 130 stopped by Ctrl-C.)";

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv,
                     {FERRY_VERSION, kSubcommands, kFooter, kOldNames, kOldValues, kWithOldNames});
}
