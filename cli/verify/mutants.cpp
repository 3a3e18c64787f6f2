// `ferry verify --mutants` and `--mutant NAME`: show that the oracles find deliberate faults.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console/exit_codes.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/verify/table_ranks.h"
#include "cli/verify/verify.h"
#include "formats/error.h"
#include "formats/nearest.h"
#include "verify/campaign/replay_line.h"
#include "verify/core/core_trials.h"
#include "verify/core/matrix.h"
#include "verify/report/report.h"

namespace ferry::cli {
namespace {

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_for_machines(const std::vector<verify::MatrixRow>& rows, bool csv) {
  using Ordered = nlohmann::ordered_json;
  Ordered json = {{"schema", kSchema}, {"mutants", Ordered::array()}};
  const auto text = [](std::string_view value) {
    return value.empty() ? Ordered() : Ordered(value);
  };
  for (const verify::MatrixRow& row : rows) {
    json["mutants"].push_back(
        {{"name", row.mutant.name},
         {"world", verify::name(row.mutant.part)},
         {"killed_by", text(row.killed_by())},
         {"tests", row.tests},
         {"counterexample_ops",
          row.counterexample_ops ? Ordered(*row.counterexample_ops) : Ordered()},
         {"replay", text(row.replay)},
         {"wrong", row.wrong()}});
  }
  csv ? print_csv(json["mutants"]) : print_json(json);
}

void print_table(const std::vector<verify::MatrixRow>& rows) {
  fmt::print("{:<36} {:<11} {:<18} {:>6} {:>5}\n", "mutant", "of", "killed by", "tests", "ops");
  std::int64_t by_programs = 0, by_cases = 0, by_tests = 0;
  std::vector<std::int64_t> sizes, tests;
  for (const verify::MatrixRow& row : rows) {
    by_programs += row.oracle ? 1 : 0;
    by_cases += row.killed_by_own_case ? 1 : 0;
    if (!row.test.empty()) {
      ++by_tests;
      fmt::print("{:<36} {:<11} {}\n", row.mutant.name, verify::name(row.mutant.part),
                 row.killed_by());
      continue;
    }
    const std::string ops =
        row.counterexample_ops ? fmt::format("{}", *row.counterexample_ops) : "-";
    const std::string by = row.killed() ? row.killed_by() : "SURVIVES";
    const std::string wrong = row.unconfirmed ? "  (!) unconfirmed" : row.wrong() ? "  (!)" : "";
    fmt::print("{:<36} {:<11} {:<18} {:>6} {:>5}{}\n", row.mutant.name,
               verify::name(row.mutant.part), by, row.tests, ops, wrong);
    if (!row.counterexample_ops) continue;
    sizes.push_back(*row.counterexample_ops);
    tests.push_back(row.tests);
  }
  fmt::print(
      "\n{} mutants, {} killed: {} by random programs, {} by special cases, {} by unit tests\n",
      rows.size(), by_programs + by_cases + by_tests, by_programs, by_cases, by_tests);
  if (!sizes.empty()) {
    fmt::print(
        "counterexamples: {} device operations (median), {} at most; first kill after {} "
        "programs (median), {} at most\n",
        median(sizes), *std::max_element(sizes.begin(), sizes.end()), median(tests),
        *std::max_element(tests.begin(), tests.end()));
  }
}

}  // namespace

verify::MatrixOptions matrix_options(const VerifyArguments& arguments) {
  verify::MatrixOptions options;
  options.seed = arguments.seed;
  options.jobs = arguments.jobs;
  options.stop = is_stopped;
  if (arguments.programs > 0) options.programs = arguments.programs;
  return options;
}

std::vector<std::string> mutant_words() {
  std::vector<std::string> words;
  for (const verify::Mutant& mutant : verify::all_mutants())
    words.push_back(verify::word_of(mutant));
  return words;
}

verify::Mutant mutant_of(const std::string& option, const std::string& name) {
  if (auto found = verify::find_mutant(name)) return *found;
  std::vector<std::string> names;
  for (const verify::Mutant& mutant : verify::all_mutants()) names.push_back(mutant.name);
  if (const auto at = find_name(name, names)) return *verify::find_mutant(names[*at]);
  throw InputError(option, 0,
                   "there is no '" + name + "': expected a name from `ferry verify --mutants`" +
                       did_you_mean(name, names));
}

int print_mutants(const VerifyArguments& arguments, Ranks* ranks) {
  verify::MatrixOptions options = matrix_options(arguments);
  const std::vector<verify::Mutant> mutants = verify::all_mutants();
  ProgressLine progress;
  std::size_t done = 0;
  options.progress = [&](const verify::Mutant& mutant) {
    progress.show(++done, mutants.size(), mutant.name);
  };
  const auto rows =
      ranks
          ? lead_matrix(*ranks, options,
                        [&](std::size_t count) { progress.show(count, mutants.size(), "mutants"); })
          : verify::mutation_matrix(mutants, options);
  progress.clear();
  if (arguments.json || arguments.csv) {
    print_for_machines(rows, arguments.csv);
  } else {
    fmt::print("seed {}\n", arguments.seed);
    print_table(rows);
  }
  const bool wrong =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.wrong(); });
  if (rows.size() < mutants.size()) {
    const ExitCode stopped = told_stopped(
        fmt::format("{} of {} mutants of seed {}", rows.size(), mutants.size(), arguments.seed));
    return wrong ? kViolated : stopped;
  }
  return wrong ? kViolated : kOk;
}

int hunt_mutant(const VerifyArguments& arguments) {
  const verify::Mutant mutant = mutant_of("--mutant", arguments.mutant);
  const auto rows = verify::mutation_matrix({mutant}, matrix_options(arguments));
  if (rows.empty()) {
    return told_stopped(
        fmt::format("programs of seed {}; none of them killed {}", arguments.seed, mutant.name));
  }
  const verify::MatrixRow& row = rows.front();
  if (arguments.json || arguments.csv) {
    print_for_machines(rows, arguments.csv);
  } else if (!row.replay.empty()) {
    fmt::print("{}: killed by program {} of seed {}\n\n{}", mutant.name, row.tests, arguments.seed,
               verify::explain(verify::parse_line(row.replay, {&verify::core_trials()})).text);
  } else {
    print_table(rows);
  }
  return row.killed() ? kViolated : kOk;
}

}  // namespace ferry::cli
