#include "sim/verify/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry::verify {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Runner {
 public:
  explicit Runner(const CampaignOptions& options) : options_(options) {
    if (options.programs > 0) end_ = static_cast<std::uint64_t>(options.programs);
  }

  // Until there is nothing more to do. On any number of threads.
  void work() {
    Coverage coverage;
    OperationCount count(coverage);
    try {
      for (std::uint64_t number = next_++; number < end_ && !late(); number = next_++) {
        const Mutant who =
            no_mutant(number % 8 == 7 ? MutantWorld::kPipeline : MutantWorld::kOffload);
        Tried tried = try_drawn(who, options_.seed, number, &count);
        coverage.add(tried);
        ++done_;
        if (tried.verdict) report({number, std::move(tried.attempt), *tried.verdict});
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
  bool late() const { return options_.seconds > 0 && seconds() > options_.seconds; }

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
