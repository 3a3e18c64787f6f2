// A campaign tries many programs, on one thread or several, until an oracle objects to one.
//
// Program number i of a seed is the same whatever the number of threads. Where a number of programs
// is given, the failure that is reported is the one with the lowest number, so it is the same, too,
// and what is counted are the programs up to it (ledger.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "verify/campaign/coverage.h"
#include "verify/campaign/drawn_run.h"
#include "verify/campaign/ledger.h"
#include "verify/campaign/run_spec.h"

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
  // If there is a number, each program is a pipeline of few turns. It runs in every order of them,
  // once for those that are alike, and at most so often (every_order.h).
  std::optional<std::uint64_t> orders;
  const CoreTrials* core = nullptr;  // tries the core; null: a scheduler is tried
  std::optional<Mutant> canary;      // is tried in the core's stead: what must be found is found
  // Is tried where it is not null; it outlives the campaign. `usual`: no answers are drawn for it.
  const HuntedScheduler* scheduler = nullptr;
  bool usual = false;
  // Is asked between programs, on every thread; true ends the campaign, as time does.
  std::function<bool()> stop;
  Settled from;  // what was tried before: it goes on from there
  // Are called on the calling thread: now and then, and when all is over.
  std::function<void(const Ledger& ledger, double seconds)> progress;
  std::function<void(const Ledger& ledger)> ended;
};

struct Campaign {
  Coverage coverage;
  double seconds = 0;
  std::optional<Failure> failure;
};

// Tries the scheduler, or the offload core; then every 16th program tries a pipeline.
Campaign run_campaign(const CampaignOptions& options);

// Its parts, for campaigns of several processes. A campaign's start, and whether its time is over
// or it was stopped.
class Deadline {
 public:
  explicit Deadline(const CampaignOptions& options) : options_(options) {}
  double seconds() const;
  bool is_late() const;

 private:
  using Clock = std::chrono::steady_clock;
  const CampaignOptions& options_;
  const Clock::time_point start_ = Clock::now();
};

// The numbers of the campaign.
std::uint64_t block_size(const CampaignOptions& options);
std::uint64_t end_of(const CampaignOptions& options);

// Tries program `number` of the campaign; some are looked at more closely when nobody objects.
// `watch` is told of its first run's operations.
DrawnRun try_program(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                     StreamOpConsumer* watch = nullptr);

// The programs of a block, until one fails, which is made smaller at once, or time is over.
TriedBlock try_block(const CampaignOptions& options, const Deadline& deadline,
                     const ProgramRange& block);

}  // namespace ferry::verify
