// `ferry verify`: tests the scheduler core, its mutants and the schedulers of other systems with
// random programs. verify/ has the programs and the oracles; this room has the command line.
#include "cli/verify/verify.h"
#include "cli/console/messages.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cli/console/context.h"
#include "cli/console/numbers.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/ranks/ranks.h"
#include "cli/verify/campaign_file.h"
#include "cli/verify/campaign_ranks.h"
#include "cli/verify/table_ranks.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "verify/campaign/campaign.h"
#include "verify/campaign/replay_line.h"
#include "verify/core/core_trials.h"
#include "verify/report/report.h"

namespace ferry::cli {
namespace {

constexpr double kSecondsByDefault = 10;

constexpr const char* kFooter = R"(
Examples:
  ferry verify --seconds 60             test the core with random programs for a minute
  ferry verify --programs 500 --seed 7  test with the same programs every time
  ferry verify --small --every-way 1    make one event of a run unusual, each in turn
  ferry verify --every-order 1000       run small pipelines in every order of their workers
  ferry verify --programs 1000000 --resume nightly.json   repeat it to continue after a stop
  mpirun -n 64 ferry verify --programs 1000000   share the programs among MPI's ranks
  ferry verify --mutants                list which oracle finds which mutant of the core
  ferry verify --scheduler torchtune-1860   show the fault of a published scheduler

Exit code 1: an oracle objects (also to a mutant or a faulty scheduler that you named). With
--mutants and --schedulers: a fault was not found, or a correct scheduler was not clean.)";

nlohmann::ordered_json to_json(const verify::Report& report) {
  return {{"oracle", report.verdict ? name(report.verdict->oracle) : ""},
          {"words", report.verdict ? report.verdict->words : ""},
          {"device_operations", report.device_operations},
          {"confirmed", report.confirmed},
          {"replay", verify::to_line(report.spec)},
          {"report", report.text}};
}

nlohmann::ordered_json counts_of(const verify::Campaign& campaign,
                                 const VerifyArguments& arguments) {
  return {{"seed", arguments.seed},
          {"programs", campaign.coverage.programs},
          {"runs", campaign.coverage.runs},
          {"classes", campaign.coverage.classes},
          {"cut_off", campaign.coverage.cut_off},
          {"operations", campaign.coverage.operations},
          {"seconds", campaign.seconds}};
}

void print_coverage(const verify::Coverage& coverage) {
  fmt::print("\ncovered\n");
  std::string line;
  const auto add = [&line](std::string_view name, auto count) {
    const std::string item = fmt::format("{} {}", name, count);
    if (line.size() + item.size() > 92) {
      fmt::print("  {}\n", line);
      line.clear();
    }
    line.append(line.empty() ? "" : " · ").append(item);
  };
  const auto end = [&line] {
    fmt::print("  {}\n", line);
    line.clear();
  };
  fmt::print(" programs with\n");
  for (const auto& [name, count] : coverage.features) add(name, count);
  end();
  fmt::print(" steps taken\n");
  for (std::size_t step = 1; step < kPipelineSteps; ++step) {  // wards are in no program
    add(name(static_cast<Step>(step)), coverage.steps[step]);
  }
  end();
  fmt::print(" random choices in {} programs, a failure in {}; {} orders of the device\n",
             coverage.chosen, coverage.failures, coverage.schedules);
  for (std::size_t i = 0; i < choices::kChoicePoints; ++i) {
    if (coverage.asked[i] > 0) add(choices::kChoiceNames[i], coverage.asked[i]);
  }
  end();
}

// `before` is the number of runs of the campaign that this one continues.
void print(const verify::Campaign& campaign, std::int64_t before, const VerifyArguments& arguments,
           int ranks) {
  const verify::Coverage& coverage = campaign.coverage;
  if (arguments.unusual) {
    fmt::print("{} programs, every way; ", coverage.programs - coverage.cut_off);
    if (coverage.cut_off > 0) fmt::print("{} cut off by time; ", coverage.cut_off);
  }
  if (arguments.orders) {
    fmt::print("{} programs, every order; ", coverage.programs - coverage.cut_off);
    if (coverage.cut_off > 0) fmt::print("{} cut off; ", coverage.cut_off);
    fmt::print("{} classes of orders; ", coverage.classes);
  }
  const auto runs = static_cast<double>(std::max<std::int64_t>(coverage.runs, 1));
  const auto now = static_cast<double>(coverage.runs - before);
  fmt::print("{} {}{} in {:.1f} s: {:.0f} a second on {} thread{}{}, {:.0f} operations each\n",
             coverage.runs, arguments.unusual || arguments.orders ? "runs" : "programs",
             before > 0 ? fmt::format(", {} of them", coverage.runs - before) : "",
             campaign.seconds, now / std::max(campaign.seconds, 1e-9), arguments.jobs,
             arguments.jobs == 1 ? "" : "s",
             ranks == 1 ? "" : fmt::format(" of each of {} ranks", ranks),
             static_cast<double>(coverage.operations) / runs);
  if (!campaign.failure) {
    fmt::print("no oracle objects{}\n", is_stopped() ? " so far" : "");
    print_coverage(coverage);
  }
}

// Prints the campaign as one row of CSV, with or without a failure.
void print_row(const verify::Campaign& campaign, const verify::Report* report,
               const VerifyArguments& arguments) {
  using Ordered = nlohmann::ordered_json;
  Ordered row = counts_of(campaign, arguments);
  row["oracle"] = report && report->verdict ? Ordered(name(report->verdict->oracle)) : Ordered();
  row["words"] = report && report->verdict ? Ordered(report->verdict->words) : Ordered();
  row["replay"] = report ? Ordered(verify::to_line(report->spec)) : Ordered();
  print_csv(Ordered::array({row}));
}

verify::CampaignOptions options_of(const VerifyArguments& arguments) {
  verify::CampaignOptions options;
  options.core = &verify::core_trials();
  options.seed = arguments.seed;
  options.programs = arguments.programs;
  options.seconds = arguments.seconds;
  if (options.programs == 0 && options.seconds == 0) options.seconds = kSecondsByDefault;
  options.jobs = arguments.jobs;
  options.deviations = arguments.unusual;
  options.orders = arguments.orders;
  if (arguments.small) options.sizes = verify::Sizes::kSmall;
  if (!arguments.canary.empty()) options.canary = mutant_of("--canary", arguments.canary);
  options.stop = is_stopped;
  return options;
}

bool is_campaign(const VerifyArguments& arguments) {
  return arguments.replay.empty() && arguments.mutant.empty() && !arguments.mutants &&
         arguments.scheduler.empty() && !arguments.schedulers;
}

// Returns the options with another `stop`.
auto stopped_by(auto options, std::function<bool()> stop) {
  options.stop = std::move(stop);
  return options;
}

// Runs on every rank but the first, with the seed of rank 0. Rank 0 prints the results.
int serve(Ranks& ranks, VerifyArguments arguments) {
  try {
    serve(ranks, is_stopped, [&](const std::string& seed, std::function<bool()> stop) {
      arguments.seed = std::stoull(seed);
      if (arguments.mutants) return matrix_crew(stopped_by(matrix_options(arguments), stop));
      if (arguments.schedulers) {
        return schedulers_crew(stopped_by(scheduler_options(arguments), stop));
      }
      return campaign_crew(stopped_by(options_of(arguments), stop));
    });
  } catch (const std::exception& error) {
    tell("rank {}: {}", ranks.rank(), error.what());
    ranks.abort(kInternal);
  }
  return kOk;
}

// `ranks` are the other ranks that help; null if there are none.
int run_campaign(const VerifyArguments& arguments, Ranks* ranks) {
  verify::CampaignOptions options = options_of(arguments);
  ProgressLine progress;
  std::optional<CampaignFile> file;
  if (!arguments.resume.empty()) options.from = file.emplace(arguments.resume, arguments).settled();
  const verify::Settled before = options.from;
  options.progress = [&](const verify::Ledger& ledger, double seconds) {
    progress.show(static_cast<std::uint64_t>(ledger.tried()),
                  static_cast<std::uint64_t>(options.programs),
                  fmt::format("programs, {:.0f} s", seconds));
    if (file) file->keep(ledger, false);
  };
  options.ended = [&](const verify::Ledger& ledger) {
    if (file) file->keep(ledger, true);
  };
  const bool for_people = !arguments.json && !arguments.csv;
  if (for_people) fmt::print("seed {}\n", arguments.seed);
  std::fflush(stdout);  // so the seed is printed even if the campaign crashes
  const verify::Campaign campaign =
      ranks ? lead_campaign(*ranks, options) : verify::run_campaign(options);
  progress.clear();
  std::optional<verify::Report> report;
  if (campaign.failure) report = verify::explain(campaign.failure->spec);
  if (arguments.json) {
    nlohmann::ordered_json json = {{"schema", kSchema}};
    json.update(counts_of(campaign, arguments));
    json["features"] = campaign.coverage.features;
    json["failure"] = report ? to_json(*report) : nlohmann::ordered_json();
    print_json(json);
  } else if (arguments.csv) {
    print_row(campaign, report ? &*report : nullptr, arguments);
  } else {
    print(campaign, before.coverage.runs, arguments, ranks ? ranks->size() : 1);
    if (report)
      fmt::print("program {} of seed {}:\n\n{}", campaign.failure->number, arguments.seed,
                 report->text);
  }
  if (report) return kViolated;
  if (!is_stopped()) return kOk;
  return told_stopped(
      fmt::format("{} programs of seed {}", campaign.coverage.programs, arguments.seed));
}

int replay(const VerifyArguments& arguments) {
  const verify::Report report = verify::explain(verify::parse_line(
      arguments.replay, {&verify::core_trials(), verify::schedulers::find_hunted}));
  if (arguments.json) {
    print_json(to_json(report));
  } else {
    fmt::print("{}", report.text);
  }
  if (!arguments.hazard.empty()) write_hazard(report.spec, arguments.hazard);
  return report.verdict ? kViolated : kOk;
}

int run(const VerifyArguments& arguments, Ranks* ranks) {
  if (ranks && !is_campaign(arguments) && !arguments.mutants && !arguments.schedulers) {
    if (!ranks->is_first()) return kOk;
    throw InputError("verify", 0,
                     "expected a campaign or a table: a single program cannot run over MPI");
  }
  if (ranks && !ranks->is_first()) return serve(*ranks, arguments);
  if (!arguments.replay.empty()) return replay(arguments);
  if (!arguments.mutant.empty()) return hunt_mutant(arguments);
  if (arguments.mutants) return print_mutants(arguments, ranks);
  if (!arguments.scheduler.empty()) return try_scheduler(arguments);
  if (arguments.schedulers) return print_schedulers(arguments, ranks);
  return run_campaign(arguments, ranks);
}

// Returns the seed of the campaign that is resumed, or else a new one.
std::uint64_t seed_of(const VerifyArguments& arguments) {
  if (!arguments.resume.empty()) {
    if (const auto seed = CampaignFile::seed_of(arguments.resume)) return *seed;
  }
  std::random_device device;
  return device() % 1'000'000'000u;
}

// Adds the options of campaigns, which the other modes exclude.
void add_campaign_options(CLI::App& command, VerifyArguments& arguments, Context& context,
                          const std::vector<CLI::Option*>& modes) {
  CLI::Option* canary =
      command
          .add_option("--canary", arguments.canary,
                      "Test this mutant instead of the core, to prove that a campaign can fail")
          ->check(some_text());
  context.values[canary] = [] { return Values{mutant_words()}; };
  CLI::Option* resume =
      command
          .add_option("--resume", arguments.resume,
                      "Keep the progress of the campaign in this file, and continue from it")
          ->type_name("FILE")
          ->check(some_text());
  for (CLI::Option* mode : modes) mode->excludes(canary)->excludes(resume);
}

// Adds the options that run a program more than once.
std::pair<CLI::Option*, CLI::Option*> add_exhaustive_options(CLI::App& command,
                                                             VerifyArguments& arguments) {
  CLI::Option* unusual =
      command
          .add_option(
              "--every-way", arguments.unusual,
              "Run each program in every way with at most this many unusual events: a failed call "
              "or allocation, a poll, a pageable copy, another worker's turn")
          ->check(whole_number<std::uint64_t>(0, 8));
  CLI::Option* orders =
      command
          .add_option("--every-order", arguments.orders,
                      "Run only small pipelines, in every order of their workers and engines, but "
                      "equivalent orders only once: at most this many runs of each program")
          ->check(whole_number<std::uint64_t>(1))
          ->excludes(unusual);
  return {unusual, orders};
}

CLI::Option* add_hazard_option(CLI::App& command, VerifyArguments& arguments) {
  return command
      .add_option("--hazard", arguments.hazard,
                  "With --scheduler or --replay: write the run to this file, for `ferry check` "
                  "(formats/HAZARD.md)")
      ->type_name("FILE")
      ->check(some_text());
}

void check_hazard(const VerifyArguments& arguments) {
  if (arguments.scheduler.empty() && arguments.replay.empty()) {
    throw InputError("--hazard", 0, "expected with --scheduler or --replay: it writes one run");
  }
  require_folder_of(arguments.hazard);
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand("verify", "Test the scheduler core with random programs");
  command->footer(kFooter);
  CLI::Option* programs =
      command->add_option("--programs", arguments->programs, "Stop after N programs")
          ->check(whole_number<std::int64_t>(1));
  CLI::Option* seconds = command
                             ->add_option("--seconds", arguments->seconds,
                                          "Stop after this many seconds (default: 10)")
                             ->check(above_zero());
  CLI::Option* seed =
      command->add_option("--seed", arguments->seed, "Seed of the programs (default: a new one)")
          ->check(whole_number<std::uint64_t>(0));
  CLI::Option* jobs =
      command
          ->add_option("--jobs", arguments->jobs,
                       "Number of threads (default: all processors; over MPI, 1 for each rank)")
          ->check(whole_number(1, 1024));
  CLI::Option* small = command->add_flag(
      "--small", arguments->small, "Only small programs of about 150 operations, and no pipelines");
  const auto [unusual, orders] = add_exhaustive_options(*command, *arguments);
  orders->excludes(small);
  CLI::Option* mutants = command->add_flag("--mutants", arguments->mutants,
                                           "List which oracle finds which mutant of the core");
  CLI::Option* mutant = command
                            ->add_option("--mutant", arguments->mutant,
                                         "Find a small program that exposes this mutant")
                            ->check(some_text());
  CLI::Option* line = command
                          ->add_option("--replay", arguments->replay,
                                       "Repeat a run: the text is in a report's last line")
                          ->check(some_text());
  command->add_flag("--json", arguments->json, "Print JSON");
  CLI::Option* csv =
      command->add_flag("--csv", arguments->csv, "Print comma-separated values: a table or one row")
          ->excludes("--json");
  CLI::Option* schedulers =
      command->add_flag("--schedulers", arguments->schedulers,
                        "List published schedulers, faulty and fixed, and what found the faults");
  CLI::Option* scheduler =
      command
          ->add_option("--scheduler", arguments->scheduler,
                       "Find a small program that shows the fault of this scheduler")
          ->check(some_text());
  const std::vector<CLI::Option*> modes = {mutants, mutant, schedulers, scheduler, line};
  for (CLI::Option* mode : modes) {
    for (CLI::Option* campaign : {seconds, small, unusual, orders}) mode->excludes(campaign);
    for (CLI::Option* other : modes) {
      if (mode != other) mode->excludes(other);
    }
  }
  for (CLI::Option* other : {programs, seed, csv}) line->excludes(other);
  CLI::Option* hazard = add_hazard_option(*command, *arguments);
  add_campaign_options(*command, *arguments, context, modes);
  context.values[mutant] = [] { return Values{mutant_words()}; };
  context.values[scheduler] = [] { return Values{scheduler_names()}; };
  command->callback([arguments, seed, jobs, hazard, &context] {
    if (hazard->count() > 0) check_hazard(*arguments);
    listen_for_stop();
    const std::unique_ptr<Ranks> ranks = join_ranks();
    if (ranks && jobs->count() == 0) arguments->jobs = 1;
    if (seed->count() == 0) arguments->seed = seed_of(*arguments);
    context.exit_code = static_cast<ExitCode>(run(*arguments, ranks.get()));
  });
}

}  // namespace ferry::cli
