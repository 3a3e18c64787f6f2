// A campaign runs many random programs, on one or more threads, until an oracle objects to one.
// `ferry verify` and hunts of other schedulers (verify/hunt/hunt.h) run campaigns.
//
// The result does not depend on the number of threads. Program number i of a seed is always the
// same. If CampaignOptions::programs is set, the campaign reports the failing program with the
// lowest number, and counts only the programs up to it (ledger.h). If the time or `stop` ends the
// campaign earlier, the number of tried programs depends on the speed.
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
  std::int64_t programs = 0;  // the maximum; 0: no limit
  double seconds = 0;         // the maximum; 0: no limit
  int jobs = 1;
  Sizes sizes = Sizes::kMixed;  // small programs have no pipelines
  // Without a value, each program runs once, with random answers to its choices. With a value, each
  // program runs in all ways that have at most this many unusual answers.
  std::optional<std::uint64_t> deviations;
  // With a value, each program is a small pipeline. It runs once for each class of equivalent
  // orders of its turns, and at most this many times (every_order.h).
  std::optional<std::uint64_t> orders;
  const CoreTrials* core = nullptr;  // runs the core; null: a scheduler is tried
  std::optional<Mutant> canary;      // runs instead of the core, to prove that a campaign can fail
  // If not null, this scheduler is tried instead of the core. It must outlive the campaign. With
  // `usual`, all answers for it are the usual ones.
  const HuntedScheduler* scheduler = nullptr;
  bool usual = false;
  // Called between programs, on every thread. If it returns true, the campaign ends.
  std::function<bool()> stop;
  Settled from;  // programs that an earlier campaign tried; this one continues after them
  // Called on the thread of run_campaign: `progress` about every 200 ms, `ended` once at the end.
  std::function<void(const Ledger& ledger, double seconds)> progress;
  std::function<void(const Ledger& ledger)> ended;
};

struct Campaign {
  Coverage coverage;
  double seconds = 0;
  std::optional<Failure> failure;
};

// Tries options.scheduler on random steps. If it is null, tries the offload core, and a pipeline in
// every 16th program.
Campaign run_campaign(const CampaignOptions& options);

// The rest of this file is for campaigns that run in several processes.
//
// Measures the time since the start of a campaign, and says if it should end now.
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

// Return the number of programs that a thread takes at once, and the first number that is not
// tried.
std::uint64_t block_size(const CampaignOptions& options);
std::uint64_t end_of(const CampaignOptions& options);

// Tries program `number` of the campaign, and looks closer at some programs that pass. `watch` gets
// the operations of the program's first run.
DrawnRun try_program(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                     StreamOpConsumer* watch = nullptr);

// Tries the programs of a block until one fails or the time is over. The failing program is shrunk.
TriedBlock try_block(const CampaignOptions& options, const Deadline& deadline,
                     const ProgramRange& block);

}  // namespace ferry::verify
