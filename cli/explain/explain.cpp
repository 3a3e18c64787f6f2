// `ferry explain`: what memory was for at its peak, in a memory snapshot of PyTorch or in a stream
// log. So a user whose training does not fit sees what takes the memory, and where in the program
// it was requested.
//
// The kind of the file decides. sim/peak finds the peak and its owners; snapshot_text.h and
// log_text.h print them.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/shipped.h"
#include "cli/explain/command.h"
#include "cli/explain/log_text.h"
#include "cli/explain/snapshot_text.h"
#include "cli/snapshot_replay.h"
#include "formats/error.h"
#include "formats/file_kind.h"
#include "formats/line_source.h"
#include "formats/memory_snapshot.h"
#include "formats/text_file.h"
#include "scenarios/hardware.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

struct ExplainArguments {
  std::string file;
  std::string hardware = "h100";
  std::optional<std::uint32_t> device;
  bool json = false;
};

// Returns the bytes of the history that were requested without frames. PyTorch's threads of
// backward have none in Python.
std::int64_t frameless_bytes(const ExplainedSnapshot& explained) {
  std::int64_t bytes = 0;
  for (const SnapshotOwner& owner : explained.owners) {
    const bool frames = owner.words.when != peak::When::kNoFrames;
    bytes += frames || owner.old ? 0 : owner.bytes;
  }
  return bytes;
}

// Says what a snapshot lacks, and how to record it. Returns kNotJudged if the owners are not known.
ExitCode told_missing(const ExplainedSnapshot& explained) {
  const std::string& file = explained.file;
  if (explained.moment.mismatches > 0) {
    tell(
        "{}: {} entries of the history do not fit the blocks: it has gaps, so the peak may be "
        "another one",
        file, explained.moment.mismatches);
  }
  if (explained.moment.entries == 0) {
    tell(
        "{}: no history, so this is the moment of the snapshot and not the peak: call "
        "torch.cuda.memory._record_memory_history() before the training",
        file);
  }
  if (const std::int64_t bytes = frameless_bytes(explained);
      explained.any_stack && bytes >= explained.moment.peak_bytes() / 10 && bytes > 0) {
    tell(
        "{}: {} have no Python frames: _record_memory_history(stacks=\"all\") records C++ frames "
        "as well, which name the nodes of backward",
        file, format_bytes(bytes));
  }
  if (explained.any_stack || explained.moment.blocks.empty()) return kOk;
  tell(
      "{}: no stacks, so it is not known who requested the memory: record them with "
      "torch.cuda.memory._record_memory_history(stacks=\"all\")",
      file);
  return kNotJudged;
}

// Says what to do with the answer.
std::string next_step(const ExplainArguments& arguments) {
  return fmt::format(
      "\nNext: ferry plan train.py --card {}, with the script that trains, finds what to offload "
      "or "
      "recompute, and which changes of the training would help.\n",
      arguments.hardware);
}

ExitCode explain_snapshot(const ExplainArguments& arguments) {
  const Hardware card = find_hardware(arguments.hardware);
  const MemorySnapshot snapshot = read_memory_snapshot(arguments.file);
  const ExplainedSnapshot result = explained(arguments.file, snapshot, card, arguments.device);
  if (arguments.json) {
    print_json(to_json(result));
  } else {
    print_text(to_text(result) + next_step(arguments));
  }
  return told_missing(result);
}

ExitCode explain_log(const ExplainArguments& arguments) {
  if (arguments.device) {
    throw InputError("--device", 0, "expected with a memory snapshot, found a stream log");
  }
  std::ifstream in = open_file(arguments.file);
  // A line of a log is an object. What begins in another way is no log with a mistake in it.
  if (const int first = in.peek(); first != EOF && !std::strchr("{ \t\r\n", first)) {
    throw InputError(arguments.file, 0,
                     "expected a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) or "
                     "a stream log");
  }
  LineSource lines(in, arguments.file);
  const peak::LogPeak found = peak::peak_of_log(lines);
  if (found.owners.empty()) {
    throw InputError(arguments.file, 0,
                     "expected allocations of device memory, found none: there is no peak");
  }
  if (arguments.json) {
    print_json(to_json(found));
  } else {
    print_text(to_text(arguments.file, found) + next_step(arguments));
  }
  return kOk;
}

ExitCode run(const ExplainArguments& arguments) {
  if (is_snapshot(arguments.file)) return explain_snapshot(arguments);
  refuse_other_kinds(arguments.file, {FileKind::kPickle, FileKind::kLog, FileKind::kHazard});
  return explain_log(arguments);
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Say what memory was for at its peak, from a snapshot or a log");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry explain snapshot.pickle                  who requested the memory at its peak
  ferry explain snapshot.pickle --card rtx4090   with the cost of an offload on that card
  ferry explain run.jsonl                        the same for a log of `ferry run`

In Python, torch.cuda.memory._record_memory_history() before the training and
torch.cuda.memory._dump_snapshot("snapshot.pickle") after it, or after an out-of-memory error, write
a snapshot.)");
  CLI::Option* file =
      command->add_option("file", arguments->file, "A memory snapshot of PyTorch, or a stream log")
          ->type_name("FILE")
          ->required();
  context.values[file] = [] { return Values{.names = {}, .or_file = true}; };
  CLI::Option* hardware = command
                              ->add_option("--card", arguments->hardware,
                                           "The card, whose link gives the cost of an offload")
                              ->type_name("NAME")
                              ->capture_default_str();
  context.values[hardware] = shipped_cards;
  command
      ->add_option("--device", arguments->device,
                   "The number of the CUDA device; by default that with the largest peak")
      ->type_name("N");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, &context] { context.exit_code = run(*arguments); });
}

}  // namespace ferry::cli
