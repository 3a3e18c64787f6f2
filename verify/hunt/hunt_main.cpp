#include "verify/hunt/hunt_main.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/nearest.h"
#include "formats/stop_signal.h"
#include "formats/typed_number.h"
#include "shared/seam/step.h"
#include "verify/hunt/crash.h"
#include "verify/hunt/hunt.h"
#include "verify/report/hazard_of.h"

namespace ferry::verify {
namespace {

enum ExitCode : int {
  kClean = 0,
  kObjected = 1,
  kUsage = 2,
  kResourceMissing = 7,
  kInternal = 70,
  kStoppedBase = 128
};

struct Arguments {
  HuntOptions options;
  std::vector<std::string> names;
  std::vector<std::string> without;
  bool failures = false;
  bool list = false;
  std::string line;
  std::string hazard;
};

constexpr const char* kFooter = R"(
Exit code 0: no oracle objects. 1: an oracle objects, see the report. 2: wrong command line.)";

template <class Whole>
CLI::Validator whole(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  return {[=](std::string& text) { return not_whole(text, least, most); }, ""};
}
CLI::Validator above_zero() {
  return {[](std::string& text) { return not_above_zero(text); }, ""};
}

void add_options(CLI::App& app, Arguments& arguments, const std::vector<std::string>& names) {
  HuntOptions& options = arguments.options;
  app.footer(kFooter);
  app.add_option("names", arguments.names,
                 "Schedulers to test (default: all): " + CLI::detail::join(names, ", "));
  app.add_option("--programs", options.programs,
                 "Maximum number of programs (default: 1000, or no limit with --seconds)")
      ->check(whole<std::int64_t>(1));
  app.add_option("--seconds", options.seconds, "Maximum time in seconds")->check(above_zero());
  app.add_option("--seed", options.seed,
                 "Seed of the random programs (default: a new one each time)")
      ->check(whole<std::uint64_t>(0));
  app.add_option("--jobs", options.jobs, "Threads")->check(whole(1, 1024));
  app.add_flag("--small", options.small, "Only small programs, of about 150 operations each");
  app.add_flag("--usual", options.usual, "No unusual answers to what CUDA and PyTorch leave open");
  app.add_option("--every-way", options.every_way,
                 "Run each program in all ways with at most this many unusual answers")
      ->check(whole<std::uint64_t>(0, 8));
  app.add_option("--only", options.only, "Run only the program with this number")
      ->check(whole<std::uint64_t>(0));
  app.add_option("--without", arguments.without,
                 "Features to leave out of the programs, separated by commas")
      ->delimiter(',');
  app.add_flag("--failures", arguments.failures,
               "Device calls and allocations may fail: the caller must get the cause, and "
               "nothing may be left");
  CLI::Option* line =
      app.add_option("--replay", arguments.line, "Repeat the run of a report's last line");
  app.add_option(
         "--hazard", arguments.hazard,
         "Write the failure to a file for `ferry check`: its stream log, and an order of the "
         "device that shows it")
      ->type_name("FILE");
  app.add_flag("--features", arguments.list, "List the features for --without");
  for (const char* other : {"--programs", "--seconds", "--seed", "--every-way", "--only"}) {
    line->excludes(app.get_option(other));
  }
}

// Returns `program name --seed S --only `, with all options of this hunt that change the programs.
std::string again_from(const std::string& program, const HuntedScheduler& scheduler,
                       const Arguments& arguments) {
  std::string text = program + " " + scheduler.name;
  text += " --seed " + std::to_string(arguments.options.seed);
  for (const Feature feature : scheduler.without) {
    text.append(" --without ").append(info(feature).word);
  }
  if (scheduler.survives_failures) text += " --failures";
  if (arguments.options.small) text += " --small";
  if (arguments.options.usual) text += " --usual";
  if (const auto ways = arguments.options.every_way)
    text += " --every-way " + std::to_string(*ways);
  return text + " --only ";
}

// Counts the steps of offloading. Those of checkpoints belong to Ferry, not to the scheduler.
std::int64_t own_steps(const Coverage& covered) {
  std::int64_t sum = 0;
  for (std::size_t step = 1; step < kOffloadSteps; ++step) sum += covered.steps[step];
  return sum;
}

void print_clean(const HuntedScheduler& scheduler, const Hunt& found) {
  const Coverage& covered = found.coverage;
  const std::int64_t runs = std::max<std::int64_t>(covered.runs, 1);
  std::cout << scheduler.name << ": no oracle objects" << (stop_signal() != 0 ? " so far: " : ": ")
            << covered.programs << " programs, " << covered.runs << " runs of "
            << covered.operations / runs << " operations, " << own_steps(covered) / runs
            << " of them its own";
  if (covered.cut_off > 0) std::cout << ", " << covered.cut_off << " cut off by time";
  std::cout << "\n";
  if (own_steps(covered) == 0) {
    std::cout << "  it took no step: every tensor was left to autograd, or its calls name "
                 "Step::kUser\n";
  }
  if (scheduler.without.empty()) return;
  const char* before = "  left out: ";
  for (const Feature feature : scheduler.without) {
    std::cout << before << info(feature).word;
    before = ", ";
  }
  std::cout << "\n";
}

void write_hazard(const Report& report, const Arguments& arguments) {
  if (arguments.hazard.empty()) return;
  HazardFile hazard = hazard_of(report.spec);
  hazard.system = report.spec.scheduler->name;
  hazard.what = to_string(*report.verdict);
  write_file(arguments.hazard, to_text(hazard));
}

ExitCode hunt_one(const std::string& program, const HuntedScheduler& scheduler,
                  const Arguments& arguments) {
  const TellsCrashes tells(again_from(program, scheduler, arguments));
  HuntOptions options = arguments.options;
  options.stop = [] { return stop_signal() != 0; };
  const Hunt found = hunt(scheduler, options, program + " --replay");
  if (!found.report) {
    print_clean(scheduler, found);
    return kClean;
  }
  std::cout << scheduler.name << ": program " << found.number << " of seed "
            << arguments.options.seed << ":\n\n"
            << found.report->text;
  write_hazard(*found.report, arguments);
  return kObjected;
}

void print_features() {
  for (const Feature feature : all_features()) {
    std::string word(info(feature).word);
    word.resize(20, ' ');
    std::cout << word << info(feature).what << "\n";
  }
}

// Returns the schedulers named on the command line, in this order, with its options applied.
std::vector<HuntedScheduler> chosen(const std::vector<HuntedScheduler>& schedulers,
                                    const std::vector<std::string>& names,
                                    const Arguments& arguments) {
  std::vector<HuntedScheduler> found;
  for (const std::string& name : arguments.names) {
    const auto at = find_name(name, names);
    if (!at) {
      throw InputError("names", 0,
                       "there is no '" + name + "', expected one of: " +
                           CLI::detail::join(names, ", ") + did_you_mean(name, names));
    }
    found.push_back(schedulers[*at]);
  }
  if (arguments.names.empty()) found = schedulers;
  for (HuntedScheduler& each : found) {
    for (const std::string& word : arguments.without) each.without.push_back(feature_of(word));
    each.survives_failures |= arguments.failures;
  }
  return found;
}

int run(const std::string& program, const std::vector<HuntedScheduler>& schedulers,
        const std::vector<std::string>& names, const Arguments& arguments) {
  if (arguments.list) {
    print_features();
    return kClean;
  }
  if (!arguments.hazard.empty()) require_folder_of(arguments.hazard);
  if (!arguments.line.empty()) {
    const Report report = replay(schedulers, arguments.line, program + " --replay");
    std::cout << report.text;
    if (report.verdict) write_hazard(report, arguments);
    return report.verdict ? kObjected : kClean;
  }
  // Printed first, so that a crash can be repeated.
  std::cout << "seed " << arguments.options.seed << "\n" << std::flush;
  listen_for_stop_signal("\nstopping; press again to stop at once\n");
  int worst = kClean;
  for (const HuntedScheduler& each : chosen(schedulers, names, arguments)) {
    worst = std::max<int>(worst, hunt_one(program, each, arguments));
    if (stop_signal() != 0) return kStoppedBase + stop_signal();
  }
  return worst;
}

}  // namespace

int hunt_main(int argc, char** argv, const std::vector<HuntedScheduler>& schedulers) {
  std::vector<std::string> names;
  names.reserve(schedulers.size());
  for (const HuntedScheduler& each : schedulers) names.push_back(each.name);
  Arguments arguments;
  arguments.options.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  CLI::App app("Tests schedulers of saved tensors on random programs, with independent oracles");
  add_options(app, arguments, names);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kClean : kUsage;
  }
  if (app.count("--seconds") > 0 && app.count("--programs") == 0) arguments.options.programs = 0;
  if (app.count("--seed") == 0) arguments.options.seed = std::random_device()() % 1'000'000'000u;
  try {
    return run(argc > 0 ? argv[0] : "", schedulers, names, arguments);
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << "\n";
  } catch (const std::system_error& error) {
    std::cerr << error.what() << "\n";
    return kResourceMissing;
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n";
    return kInternal;
  }
  return kUsage;
}

}  // namespace ferry::verify
