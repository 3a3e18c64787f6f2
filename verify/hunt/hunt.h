// Hunts a scheduler: random programs, every oracle watching, what an oracle objects to made small
// and told on a screen.
//
// Depends on the scheduler and the options alone, `seconds` aside: equal seeds find the same
// program, on any number of threads. A scheduler is made anew for each run, on the thread that
// runs it; schedulers that share something answer for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/campaign/campaign.h"
#include "verify/hunted/hunted.h"
#include "verify/report/report.h"

namespace ferry::verify {

struct HuntOptions {
  std::uint64_t seed = 0;
  std::int64_t programs = 1000;  // at most; 0: no bound
  double seconds = 0;            // likewise
  int jobs = 1;                  // threads
  bool small = false;            // programs of some 150 operations alone
  bool usual = false;            // no answers are drawn: the usual ones, and no plans of segments
  // Of each program every run with at most so many answers that are not the usual ones.
  std::optional<std::uint64_t> every_way = {};
  std::optional<std::uint64_t> only = {};  // the program of this number alone
  // Is asked between programs, on every thread; true ends the hunt, as time does.
  std::function<bool()> stop = nullptr;
};

struct Hunt {
  Coverage coverage;
  double seconds = 0;
  std::uint64_t number = 0;      // of the program that failed
  std::optional<Report> report;  // none: no oracle objects
};

// `again`: what a report says before the line that replays it, as a command.
// Throws std::invalid_argument for a scheduler without a name that replay lines can have.
Hunt hunt(const HuntedScheduler& scheduler, const HuntOptions& options = {},
          std::string_view again = "ferry::verify::replay:");

// Makes the run of a line that a report ended with. Throws InputError where it is no such line, or
// is of none of these.
Report replay(const std::vector<HuntedScheduler>& schedulers, std::string_view line,
              std::string_view again = "ferry::verify::replay:");

}  // namespace ferry::verify
