// `ferry sweep`: plans every combination of programs, cards, options, budgets and policies. It
// writes a results file from which it can continue, and prints the combinations that no other one
// beats.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/console/messages.h"
#include "cli/console/numbers.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/ranks/ranks.h"
#include "cli/sweep/command.h"
#include "cli/sweep/front.h"
#include "cli/sweep/hand_out.h"
#include "cli/sweep/item.h"
#include "cli/sweep/outcome.h"
#include "cli/sweep/picture.h"
#include "cli/sweep/results_file.h"
#include "cli/sweep/runner.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/text_file.h"
#include "scenarios/sweep.h"

namespace ferry::cli {
namespace {

struct SweepArguments {
  std::string file;
  std::filesystem::path output;
  std::vector<std::filesystem::path> from;
  std::size_t jobs = 0;  // 0: one per core; over MPI, one per rank
  double limit_seconds = 0;
  std::string share;
  std::filesystem::path html;
  bool again = false;
  bool drop = false;
  bool json = false;
  bool csv = false;
};

struct Share {
  std::size_t number = 0, of = 1;
};

// Parses "2/8", the second of eight shares.
Share parse_share(const std::string& text) {
  Share share;
  if (text.empty()) return share;
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || !is_number(text.substr(0, slash), share.number) ||
      !is_number(text.substr(slash + 1), share.of) || share.number < 1 || share.number > share.of) {
    throw InputError("--share", 0, "expected a share such as 2/8, the second of eight");
  }
  --share.number;
  return share;
}

// Returns "items, 3 min left", estimated from the time since the start.
std::string time_left(std::chrono::steady_clock::time_point start, std::size_t done,
                      std::size_t all) {
  if (done == 0) return "items";
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const double left = taken.count() / static_cast<double>(done) * static_cast<double>(all - done);
  const auto seconds = static_cast<long long>(left) + 1;
  if (done == all) return "items";
  return seconds < 100    ? fmt::format("items, {} s left", seconds)
         : seconds < 6000 ? fmt::format("items, {} min left", seconds / 60)
                          : fmt::format("items, {} h left", seconds / 3600);
}

// Prints and counts the results, which come in the order of the sweep.
class Summary {
 public:
  explicit Summary(const SweepArguments& arguments) : arguments_(arguments) {}

  void add(const std::string& line) {
    auto json = nlohmann::ordered_json::parse(line);
    if (arguments_.json) print_text(line);
    if (arguments_.csv) print_csv_row(json, all_ == 0);
    ++all_;
    const std::string outcome = json["outcome"];
    ++counts_[outcome];
    if (json["cause"].is_string() && causes_.size() < kMostCauses) {
      causes_.push_back(fmt::format(
          "{} on {}, {}, budget {}: {}: {}", json["program"].get<std::string>(),
          json["hardware"].get<std::string>(), json["policy"].get<std::string>(),
          json["budget"].get<std::string>(), outcome, json["cause"].get<std::string>()));
    }
    fronts_.add(json);
  }

  // Returns "12 items: 10 fits, 2 refused".
  std::string counts() const {
    std::string text = fmt::format("{} item{}", all_, all_ == 1 ? "" : "s");
    const char* between = ": ";
    for (const auto& [outcome, count] : counts_) {
      text += fmt::format("{}{} {}", between, outcome, count);
      between = ", ";
    }
    return text;
  }

  void print() const {
    if (!arguments_.json && !arguments_.csv) {
      print_text(fronts_.table() + "\n" + counts() + "\n");
    }
    for (const std::string& cause : causes_) tell(cause);
    std::size_t with_cause = 0;
    for (const auto& [outcome, count] : counts_) with_cause += is_told(outcome) ? count : 0;
    if (with_cause > causes_.size()) {
      tell("{} more: see \"cause\" in {}", with_cause - causes_.size(), arguments_.output.string());
    }
  }

  const Fronts& fronts() const { return fronts_; }

  ExitCode code() const {
    for (const std::string_view bad : {kViolates, kFailed, kCrashed, kLate}) {
      if (counts_.contains(std::string(bad))) return kViolated;
    }
    return counts_.contains(std::string(kRefused)) ? kUsage : kOk;
  }

 private:
  static constexpr std::size_t kMostCauses = 10;
  static bool is_told(const std::string& outcome) {
    return outcome != kFits && outcome != kFitsNot;
  }

  const SweepArguments& arguments_;
  std::size_t all_ = 0;
  std::map<std::string, std::size_t> counts_;
  std::vector<std::string> causes_;
  Fronts fronts_;
};

// Returns the items of the share that are not done.
std::vector<std::size_t> what_to_do(const ResultsFile& results, const Items& items, Share share) {
  std::vector<std::size_t> to_do;
  for (std::size_t i = share.number; i < items.size(); i += share.of) {
    if (!results.is_done(i)) to_do.push_back(i);
  }
  return to_do;
}

// Runs on every rank but the first. Rank 0 prints the results.
ExitCode serve(Ranks& ranks, const RunOptions& options) {
  try {
    serve_items(ranks, options);
  } catch (const std::exception& error) {
    tell("rank {}: {}", ranks.rank(), error.what());
    ranks.abort(kResourceMissing);
  }
  return kOk;
}

ExitCode run(const SweepArguments& arguments) {
  const std::unique_ptr<Ranks> ranks = join_ranks();
  RunOptions options;
  options.jobs = arguments.jobs > 0 ? arguments.jobs
                 : ranks            ? 1
                                    : std::max(1U, std::thread::hardware_concurrency());
  options.limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(arguments.limit_seconds * 1000));
  options.stop = is_stopped;
  if (ranks && !ranks->is_first()) return serve(*ranks, options);

  if (!arguments.html.empty()) require_folder_of(arguments.html);
  const Share share = parse_share(arguments.share);
  const Items items(read_sweep(arguments.file));
  for (const std::filesystem::path& other : arguments.from) open_file(other);  // fails early
  ResultsFile results(arguments.output, items, {.again = arguments.again, .drop = arguments.drop});
  for (const std::filesystem::path& other : arguments.from) results.take_from(other);
  const std::vector<std::size_t> to_do = what_to_do(results, items, share);
  if (results.done() > 0 && !to_do.empty()) {
    tell("{} items are done, {} to do", results.done(), to_do.size());
  }

  ProgressLine progress;
  const auto start = std::chrono::steady_clock::now();
  options.progress = [&](std::size_t done) {
    progress.show(done, to_do.size(), time_left(start, done, to_do.size()));
  };
  run_items(items, to_do, results, options, ranks.get());
  progress.clear();
  results.finish();
  if (is_stopped()) {
    return told_stopped(
        fmt::format("{} of {} items; the same command continues", results.done(), items.size()));
  }
  Summary summary(arguments);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (results.is_done(i)) summary.add(results.line(i));
  }
  summary.print();
  if (!arguments.html.empty())
    write_file(arguments.html, picture_of(arguments.file, summary.fronts().all()));
  return summary.code();
}

}  // namespace

void add_sweep(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand(
      "sweep", "Plan every combination of programs, cards, options, budgets and policies");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry sweep fleet.toml -o fleet.jsonl   run all items; repeat the command to continue after a stop
  ferry sweep fleet.toml -o fleet.jsonl --limit 60   stop an item after 60 s and report it as late
  ferry sweep fleet.toml -o fleet.jsonl --csv   print the results as a table
  mpirun -n 64 ferry sweep fleet.toml -o fleet.jsonl   share the items among MPI's ranks
  ferry sweep fleet.toml -o part2.jsonl --share 2/8   run the second of eight parts ...
  ferry sweep fleet.toml -o fleet.jsonl --from part1.jsonl --from part2.jsonl   ... and join them

Exit code 1: an item violated a property, failed, crashed or was late. 2: an item was refused,
because its input was wrong.)");
  command->add_option("file", arguments->file, "The sweep file (.toml): docs/guides/sweeps.md")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-o,--output", arguments->output,
                   "The results file (JSON lines); the sweep continues from results in it")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--from", arguments->from,
                   "Copy results from this file of the same sweep; can be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--jobs", arguments->jobs,
                   "Items at a time (default: one per core; over MPI, one per rank)")
      ->check(whole_number<std::size_t>(1, 1024));
  command->add_option("--limit", arguments->limit_seconds, "Time limit of an item, in seconds")
      ->check(above_zero());
  command->add_option("--share", arguments->share, "Run only every Nth item, from the Kth on")
      ->type_name("K/N");
  command->add_flag("--again", arguments->again,
                    "Run items again that failed, crashed or were late");
  command->add_flag("--drop", arguments->drop,
                    "Drop results of other sweeps and of inputs that changed");
  command->add_flag("--json", arguments->json, "Print the results, in the order of the sweep");
  command->add_flag("--csv", arguments->csv, "Print the same as comma-separated values")
      ->excludes("--json");
  command->add_option("--html", arguments->html, "Write a picture of time against memory")
      ->type_name("FILE");
  command->callback([arguments, &context] {
    listen_for_stop();
    context.exit_code = run(*arguments);
  });
}

}  // namespace ferry::cli
