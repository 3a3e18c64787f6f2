#include "sim/verify/campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/choices/strategies.h"
#include "sim/verify/campaign/closer_look.h"

namespace ferry::verify {
namespace {

// One program in 32 is looked at more closely, of the pipelines (15, 31, ...) as of the others.
bool is_looked_at_closely(std::uint64_t number) { return number % 32 == 0 || number % 512 == 15; }

Mutant who_is_tried(const CampaignOptions& options, std::uint64_t number) {
  if (options.canary) return *options.canary;
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

// The programs of a block, until one fails or time is over.
TriedBlock try_block(const CampaignOptions& options, const Deadline& deadline, const Block& block) {
  TriedBlock tried{.block = block, .coverage = {}, .failure = {}};
  for (std::uint64_t number = block.first; number < block.end && !deadline.is_late(); ++number) {
    DrawnRun drawn = options.deviations ? try_every_way(options, number, tried.coverage,
                                                        [&deadline] { return deadline.is_late(); })
                                        : try_program(options, number, tried.coverage);
    tried.coverage.add(drawn);
    if (!drawn.verdict) continue;
    tried.failure = Failure{number, std::move(drawn.spec), *drawn.verdict};
    break;
  }
  return tried;
}

// The threads of a campaign.
class Threads {
 public:
  Threads(const CampaignOptions& options, const Deadline& deadline, BlockSource& source)
      : working_(std::max(options.jobs, 1)) {
    for (int i = 0; i < std::max(options.jobs, 1); ++i) {
      threads_.emplace_back(
          [this, &options, &deadline, &source] { work(options, deadline, source); });
    }
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Whether all ended, within so long. Throws what one of them threw.
  bool ended_within(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    const bool ended = ended_.wait_for(lock, pause, [this] { return working_ == 0; });
    if (ended && error_) std::rethrow_exception(error_);
    return ended;
  }

 private:
  void work(const CampaignOptions& options, const Deadline& deadline, BlockSource& source) {
    std::exception_ptr error;
    try {
      while (!failed_) {
        const std::optional<Block> block = source.take();
        if (!block) break;
        source.give(try_block(options, deadline, *block));
      }
    } catch (...) {
      error = std::current_exception();
      failed_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    if (--working_ == 0) ended_.notify_all();
  }

  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  int working_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

double Deadline::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool Deadline::is_late() const {
  return (options_.seconds > 0 && seconds() > options_.seconds) ||
         (options_.stop && options_.stop());
}

std::uint64_t block_size(const CampaignOptions& options) {
  constexpr std::uint64_t kBlock = 16;
  return options.deviations ? 1 : kBlock;  // every way through one program is as long
}

std::uint64_t end_of(const CampaignOptions& options) {
  return options.programs > 0 ? static_cast<std::uint64_t>(options.programs) : ~std::uint64_t{0};
}

void try_blocks(const CampaignOptions& options, const Deadline& deadline, BlockSource& source,
                std::chrono::milliseconds pause, const std::function<void()>& tick) {
  Threads threads(options, deadline, source);
  while (!threads.ended_within(pause)) tick();
  tick();
}

Campaign run_campaign(const CampaignOptions& options) {
  constexpr std::chrono::milliseconds kPause(200);
  const Deadline deadline(options);
  Ledger ledger(end_of(options), block_size(options), [&deadline] { return deadline.is_late(); });
  try_blocks(options, deadline, ledger, kPause, [&] {
    if (options.progress) options.progress(ledger.tried(), deadline.seconds());
  });
  return {ledger.coverage(), deadline.seconds(), ledger.failure()};
}

}  // namespace ferry::verify
