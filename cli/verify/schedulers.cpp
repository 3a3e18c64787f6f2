// `ferry verify --schedulers` and `--scheduler NAME`: test the offloading of other systems, with
// its published faults and corrected.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/verify/table_ranks.h"
#include "cli/verify/verify.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/nearest.h"
#include "verify/campaign/replay_line.h"
#include "verify/core/core_trials.h"
#include "verify/report/hazard_of.h"
#include "verify/report/report.h"
#include "verify/schedulers/registry.h"
#include "verify/schedulers/scheduler_table.h"

namespace ferry::cli {
namespace {

std::vector<verify::schedulers::SchedulerRow> rows_of(
    const std::vector<const verify::schedulers::SchedulerEntry*>& entries,
    const VerifyArguments& arguments, Ranks* ranks) {
  verify::schedulers::SchedulerTableOptions options = scheduler_options(arguments);
  ProgressLine progress;
  if (ranks) {
    return lead_schedulers(*ranks, options, [&](std::size_t count) {
      progress.show(count, entries.size(), "schedulers");
    });
  }
  std::size_t done = 0;
  options.progress = [&](std::string_view name) { progress.show(++done, entries.size(), name); };
  return verify::schedulers::scheduler_table(entries, options);
}

ExitCode exit_code(const std::vector<verify::schedulers::SchedulerRow>& rows) {
  const bool wrong =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.wrong(); });
  return wrong ? kViolated : kOk;
}

void print_for_machines(const std::vector<verify::schedulers::SchedulerRow>& rows, bool csv) {
  using Ordered = nlohmann::ordered_json;
  Ordered json = {{"schema", kSchema}, {"schedulers", Ordered::array()}};
  const auto text = [](std::string_view value) {
    return value.empty() ? Ordered() : Ordered(value);
  };
  const auto oracle = [](std::optional<verify::Oracle> one) {
    return one ? Ordered(name(*one)) : Ordered();
  };
  for (const verify::schedulers::SchedulerRow& row : rows) {
    const verify::schedulers::SchedulerEntry& entry = *row.entry;
    json["schedulers"].push_back(
        {{"name", entry.name},
         {"system", entry.system},
         {"faulty", entry.faulty},
         {"what", entry.what},
         {"source", entry.source},
         {"expected", oracle(entry.oracle)},
         {"caught_by", oracle(row.caught_by)},
         {"programs", row.programs},
         {"counterexample_ops",
          row.counterexample_ops ? Ordered(*row.counterexample_ops) : Ordered()},
         {"replay", text(row.replay)}});
  }
  csv ? print_csv(json["schedulers"]) : print_json(json);
}

void print_table(const std::vector<verify::schedulers::SchedulerRow>& rows) {
  fmt::print("{:<30} {:<16} {:>8} {:>4}  {}\n", "scheduler", "caught by", "programs", "ops",
             "what");
  std::int64_t faulty = 0, caught = 0, clean = 0;
  for (const verify::schedulers::SchedulerRow& row : rows) {
    const verify::schedulers::SchedulerEntry& entry = *row.entry;
    faulty += entry.faulty ? 1 : 0;
    if (!row.wrong()) (entry.faulty ? caught : clean) += 1;
    std::string by = entry.faulty ? "NOT CAUGHT" : "clean";
    if (row.caught_by) by = std::string(name(*row.caught_by)) + (row.wrong() ? " (!)" : "");
    const std::string ops =
        row.counterexample_ops ? fmt::format("{}", *row.counterexample_ops) : "-";
    fmt::print("{:<30} {:<16} {:>8} {:>4}  {} ({})\n", entry.name, by, row.programs, ops,
               entry.what, entry.source);
  }
  const auto total = static_cast<std::int64_t>(rows.size());
  fmt::print("\n{} of {} faulty ones caught by the expected oracle, {} of {} fixed ones clean\n",
             caught, faulty, clean, total - faulty);
}

const verify::schedulers::SchedulerEntry* find(const std::string& name) {
  const std::vector<std::string> names = scheduler_names();
  if (const auto at = find_name(name, names)) return verify::schedulers::find_scheduler(names[*at]);
  throw InputError("--scheduler", 0,
                   "there is no '" + name + "': expected a name from `ferry verify --schedulers`" +
                       did_you_mean(name, names));
}

}  // namespace

verify::schedulers::SchedulerTableOptions scheduler_options(const VerifyArguments& arguments) {
  verify::schedulers::SchedulerTableOptions options;
  options.seed = arguments.seed;
  options.jobs = arguments.jobs;
  options.stop = is_stopped;
  if (arguments.programs > 0) options.programs = options.programs_faulty = arguments.programs;
  return options;
}

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const verify::schedulers::SchedulerEntry& entry : verify::schedulers::schedulers())
    names.emplace_back(entry.name);
  return names;
}

void write_hazard(const verify::RunSpec& spec, const std::string& path) {
  HazardFile hazard = verify::hazard_of(spec);
  const auto* entry =
      spec.scheduler ? verify::schedulers::find_scheduler(spec.scheduler->name) : nullptr;
  hazard.system = entry ? entry->system : "Ferry, " + verify::word_of(spec.mutant);
  if (entry) hazard.what = entry->what;
  if (entry) hazard.source = entry->source;
  write_file(path, to_text(hazard));
}

int print_schedulers(const VerifyArguments& arguments, Ranks* ranks) {
  std::vector<const verify::schedulers::SchedulerEntry*> entries;
  for (const verify::schedulers::SchedulerEntry& entry : verify::schedulers::schedulers())
    entries.push_back(&entry);
  const auto rows = rows_of(entries, arguments, ranks);
  if (arguments.json || arguments.csv) {
    print_for_machines(rows, arguments.csv);
  } else {
    fmt::print("seed {}\n", arguments.seed);
    print_table(rows);
  }
  if (rows.size() < entries.size()) {
    const ExitCode stopped = told_stopped(
        fmt::format("{} of {} schedulers of seed {}", rows.size(), entries.size(), arguments.seed));
    return exit_code(rows) == kOk ? stopped : kViolated;
  }
  return exit_code(rows);
}

int try_scheduler(const VerifyArguments& arguments) {
  const verify::schedulers::SchedulerEntry* entry = find(arguments.scheduler);
  const auto rows = rows_of({entry}, arguments, nullptr);
  if (rows.empty()) {
    return told_stopped(
        fmt::format("programs of seed {}; no oracle objected to any", arguments.seed));
  }
  const verify::schedulers::SchedulerRow& row = rows.front();
  if (arguments.json || arguments.csv) {
    print_for_machines(rows, arguments.csv);
  } else if (row.replay.empty()) {
    fmt::print("{}: {}\n{} programs of seed {}: no oracle objects\n", entry->name, entry->what,
               row.programs, arguments.seed);
  } else {
    fmt::print("{}: {} ({})\ncaught by program {} of seed {}\n\n{}", entry->name, entry->what,
               entry->source, row.programs, arguments.seed,
               verify::explain(verify::parse_line(row.replay, {&verify::core_trials(),
                                                               verify::schedulers::find_hunted}))
                   .text);
  }
  if (!row.replay.empty() && !arguments.hazard.empty()) {
    write_hazard(
        verify::parse_line(row.replay, {&verify::core_trials(), verify::schedulers::find_hunted}),
        arguments.hazard);
  }
  return row.caught_by ? kViolated : kOk;
}

}  // namespace ferry::cli
