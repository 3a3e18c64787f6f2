// Many programs, one after another or on several threads, until one is objected to.
//
// Program number i of a seed is the same whatever the number of threads. Where a number of programs
// is given, the failure that is reported is the one with the lowest number, so it is the same, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/verify/campaign/attempt.h"
#include "sim/verify/campaign/coverage.h"

namespace ferry::verify {

struct CampaignOptions {
  std::uint64_t seed = 0;
  std::int64_t programs = 0;  // at most; 0: no bound
  double seconds = 0;         // likewise
  int jobs = 1;
  Sizes sizes = Sizes::kMixed;  // small: and no pipelines
  // None: one run of each program, its choices drawn. Else every run of it with so many answers, at
  // most, that are not the usual ones.
  std::optional<std::uint64_t> deviations;
  // Asked between programs, on every thread: true ends the campaign, as time does.
  std::function<bool()> stop;
  // Called now and then, on the calling thread.
  std::function<void(std::int64_t programs, double seconds)> progress;
};

struct Failure {
  std::uint64_t number = 0;
  Attempt attempt;
  Verdict verdict;
};

struct Campaign {
  Coverage coverage;
  double seconds = 0;
  std::optional<Failure> failure;
};

// Of whom: the core, its pipelines now and then (one program in sixteen).
Campaign run_campaign(const CampaignOptions& options);

}  // namespace ferry::verify
