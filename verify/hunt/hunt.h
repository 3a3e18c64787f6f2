// A hunt tests a scheduler on random programs until an oracle objects. Then it shrinks the program
// and reports the failure.
//
// The result depends only on the scheduler and the options, unless `seconds` ends the hunt: equal
// seeds find the same program on any number of threads. A new scheduler is made for each run, on
// the thread of the run. Schedulers that share data must make it thread-safe themselves.
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
  std::int64_t programs = 1000;  // the maximum; 0: no limit
  double seconds = 0;            // the maximum; 0: no limit
  int jobs = 1;                  // number of threads
  bool small = false;            // only programs of about 150 operations
  bool usual = false;            // no random answers and no random plans of segments
  // With a value, each program runs in all ways that have at most this many unusual answers.
  std::optional<std::uint64_t> every_way = {};
  std::optional<std::uint64_t> only = {};  // run only this program
  // Called between programs, on every thread. If it returns true, the hunt ends.
  std::function<bool()> stop = nullptr;
};

struct Hunt {
  Coverage coverage;
  double seconds = 0;
  std::uint64_t number = 0;      // of the program that failed
  std::optional<Report> report;  // none: no oracle objects
};

// `again` is the command that a report prints before its replay line. Throws std::invalid_argument
// if the scheduler's name cannot stand in a replay line.
Hunt hunt(const HuntedScheduler& scheduler, const HuntOptions& options = {},
          std::string_view again = "ferry::verify::replay:");

// Repeats the run of a report's last line. Throws InputError if the line is malformed, or if none
// of the schedulers has its name.
Report replay(const std::vector<HuntedScheduler>& schedulers, std::string_view line,
              std::string_view again = "ferry::verify::replay:");

}  // namespace ferry::verify
