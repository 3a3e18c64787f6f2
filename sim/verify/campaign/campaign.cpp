#include "sim/verify/campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/choices/strategies.h"
#include "sim/verify/campaign/closer_look.h"

namespace ferry::verify {
namespace {

// One program in 32 is looked at more closely, of the pipelines (15, 31, ...) as of the others.
bool is_looked_at_closely(std::uint64_t number) { return number % 32 == 0 || number % 512 == 15; }

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Mutant who_is_tried(const CampaignOptions& options, std::uint64_t number) {
  const bool pipeline = number % 16 == 15 && options.sizes == Sizes::kMixed;
  return no_mutant(pipeline ? MutantPart::kPipeline : MutantPart::kOffload);
}

// Tries program `number` of the campaign in every way, until `late` returns true.
DrawnRun try_every_way(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                       const std::function<bool()>& late) {
  Draws draws(options.seed, number);
  DrawnRun drawn;
  drawn.spec = draw_spec(who_is_tried(options, number), draws, options.sizes);
  drawn.spec.trial.recipe.failure =
      StepFailure::kNone;  // else no answer but failures may be unusual
  drawn.runs = 0;
  OperationCount count(coverage);
  choices::Enumeration all({.deviations = *options.deviations});
  bool more = true;
  do {
    choices::EnumeratedChoices choices(all);
    drawn.verdict = try_spec(drawn.spec, &choices, &count);
    ++drawn.runs;
    for (std::size_t i = 0; i < drawn.asked.size(); ++i) drawn.asked[i] += choices.asked()[i];
    drawn.failed |= choices.failure().has_value();
    if (drawn.verdict) drawn.spec.deviations = choices.deviations();
    more = !drawn.verdict && all.next();
  } while (more && !late());
  drawn.cut_off = more;
  return drawn;
}

// Tries program `number` of the campaign; some are looked at more closely when nobody objects.
DrawnRun try_program(const CampaignOptions& options, std::uint64_t number, Coverage& coverage) {
  OperationCount count(coverage);
  const Mutant who = who_is_tried(options, number);
  DrawnRun drawn = try_drawn(who, options.seed, number, &count, options.sizes);
  if (is_looked_at_closely(number) && !drawn.verdict)
    drawn.verdict = look_closer(drawn.spec, coverage);
  return drawn;
}

class Runner {
 public:
  explicit Runner(const CampaignOptions& options) : options_(options) {
    if (options.programs > 0) end_ = static_cast<std::uint64_t>(options.programs);
  }

  // Tries programs until there are no more. Any number of threads may call it.
  void work() {
    Coverage coverage;
    try {
      for (std::uint64_t number = next_++; number < end_ && !late(); number = next_++) {
        DrawnRun drawn = options_.deviations
                             ? try_every_way(options_, number, coverage, [this] { return late(); })
                             : try_program(options_, number, coverage);
        coverage.add(drawn);
        ++done_;
        if (drawn.verdict) report({number, std::move(drawn.spec), *drawn.verdict});
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      end_ = 0;
    }
    const std::lock_guard lock(mutex_);
    coverage_ += coverage;
  }

  std::int64_t done() const { return done_; }
  double seconds() const { return seconds_since(start_); }
  bool running() const { return next_ < end_ && !late(); }

  Campaign result() {
    if (error_) std::rethrow_exception(error_);
    return {std::move(coverage_), seconds(), std::move(failure_)};
  }

 private:
  bool late() const {
    return (options_.seconds > 0 && seconds() > options_.seconds) ||
           (options_.stop && options_.stop());
  }

  // No later program is begun: those before it go on, for one of them may fail as well.
  void report(Failure failure) {
    const std::lock_guard lock(mutex_);
    end_ = std::min<std::uint64_t>(end_, failure.number);
    if (!failure_ || failure.number < failure_->number) failure_ = std::move(failure);
  }

  const CampaignOptions& options_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> end_{~std::uint64_t{0}};
  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;
  Coverage coverage_;
  std::optional<Failure> failure_;
  std::exception_ptr error_;
};

}  // namespace

Campaign run_campaign(const CampaignOptions& options) {
  Runner runner(options);
  std::vector<std::thread> threads;
  for (int i = 0; i < std::max(options.jobs, 1); ++i) {
    threads.emplace_back([&runner] { runner.work(); });
  }
  while (options.progress && runner.running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    options.progress(runner.done(), runner.seconds());
  }
  for (std::thread& thread : threads) thread.join();
  return runner.result();
}

}  // namespace ferry::verify
