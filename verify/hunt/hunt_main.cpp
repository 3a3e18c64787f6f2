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
Exit code 0: no oracle objects. 1: one does, and the report says to what. 2: the command line.)";

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
                 "Which schedulers; else all: " + CLI::detail::join(names, ", "));
  app.add_option("--programs", options.programs,
                 "So many, at most (1000, or no bound with --seconds)")
      ->check(whole<std::int64_t>(1));
  app.add_option("--seconds", options.seconds, "For so long, at most")->check(above_zero());
  app.add_option("--seed", options.seed, "Of the programs; else a new one every time")
      ->check(whole<std::uint64_t>(0));
  app.add_option("--jobs", options.jobs, "Threads")->check(whole(1, 1024));
  app.add_flag("--small", options.small, "Small programs alone, of some 150 operations each");
  app.add_flag("--usual", options.usual, "What CUDA and PyTorch leave open goes the usual way");
  app.add_option("--every-way", options.every_way,
                 "Of each program every run with at most so many unusual answers")
      ->check(whole<std::uint64_t>(0, 8));
  app.add_option("--only", options.only, "The program of this number alone")
      ->check(whole<std::uint64_t>(0));
  app.add_option("--without", arguments.without, "Features that programs do not have, by commas")
      ->delimiter(',');
  app.add_flag("--failures", arguments.failures,
               "Calls of the device and allocations fail: the cause must reach the caller, and "
               "nothing be left");
  CLI::Option* line = app.add_option("--replay", arguments.line, "What a report's last line says");
  app.add_option(
         "--hazard", arguments.hazard,
         "The failure as a file, for `ferry check`: what was done with streams, and an order "
         "that shows it")
      ->type_name("FILE");
  app.add_flag("--features", arguments.list, "Lists the features that --without knows");
  for (const char* other : {"--programs", "--seconds", "--seed", "--every-way", "--only"}) {
    line->excludes(app.get_option(other));
  }
}

// `program name --seed S --only N`, in which this hunt's options say what is drawn.
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

// Those of offloading: a checkpoint's steps are Ferry's.
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

// Those that were named, in the order of the names, as the command line has them.
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
  std::cout << "seed " << arguments.options.seed << "\n" << std::flush;  // first, whatever happens
  listen_for_stop_signal("\nstopping; once more to stop at once\n");
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
  CLI::App app("Tries schedulers of saved tensors on random programs, every oracle watching");
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
