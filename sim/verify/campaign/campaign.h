// A campaign tries many programs, on one thread or several, until an oracle objects to one.
//
// Program number i of a seed is the same whatever the number of threads. Where a number of programs
// is given, the failure that is reported is the one with the lowest number, so it is the same, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/verify/campaign/coverage.h"
#include "sim/verify/campaign/run_spec.h"

namespace ferry::verify {

struct CampaignOptions {
  std::uint64_t seed = 0;
  std::int64_t programs = 0;  // at most; 0: no bound
  double seconds = 0;         // likewise
  int jobs = 1;
  Sizes sizes = Sizes::kMixed;  // small programs have no pipelines
  // None: each program runs once, and its choices are drawn. Otherwise it runs in every way with at
  // most so many answers that are not the usual ones.
  std::optional<std::uint64_t> deviations;
  // Is asked between programs, on every thread; true ends the campaign, as time does.
  std::function<bool()> stop;
  // Is called now and then, on the calling thread.
  std::function<void(std::int64_t programs, double seconds)> progress;
};

struct Failure {
  std::uint64_t number = 0;
  RunSpec spec;
  Verdict verdict;
};

struct Campaign {
  Coverage coverage;
  double seconds = 0;
  std::optional<Failure> failure;
};

// Tries the offload core; every 16th program tries a pipeline.
Campaign run_campaign(const CampaignOptions& options);

}  // namespace ferry::verify
