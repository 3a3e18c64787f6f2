// The `ferry` program. Adding a subcommand: a file with its add_NAME, a line in commands.h, a line
// in kSubcommands.
#include <string_view>

#include "cli/commands.h"
#include "cli/console/program.h"
#include "cli/report/command.h"
#include "cli/sweep/command.h"

namespace {

using namespace ferry::cli;

// Sorted as in the help.
constexpr AddSubcommand kSubcommands[] = {
    add_plan,   add_report, add_sweep, add_simulate, add_train,    add_run,        add_calibrate,
    add_replay, add_verify, add_check, add_programs, add_hardware, add_completion,
};

// Commands that have options by other names than before.
constexpr ferry::OldName kOldNames[] = {
    {"--hardware", "--card"}, {"--chunks", "--microbatches"}, {"--order", "--schedule"}};
constexpr std::string_view kWithOldNames[] = {"plan", "simulate", "report", "replay"};

// Each command's help has more of its own.
constexpr const char* kFooter = R"(
Examples:
  ferry plan llama3-8b --card h100   the table of policies, each simulated and checked
  ferry train gpt --policy offload       a GPT learns, its activations offloaded
  ferry verify --seconds 60              the core on random programs, every oracle watching
  ferry check run.jsonl                  races in the log of any program's streams
  ferry COMMAND --help                   more of them, and every option

A NAME is a shipped thing's or a path of your own. FERRY_SCENARIOS: where what ships is looked for.
Exit codes: 0 ok, 1 a property is violated, 2 usage or bad input, 3 does not fit,
6 simulated and real differ, 7 a resource is missing, 70 an internal error, 130 stopped by Ctrl-C.)";

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, {FERRY_VERSION, kSubcommands, kFooter, kOldNames, kWithOldNames});
}
