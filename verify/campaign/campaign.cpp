#include "verify/campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "sim/choices/strategies.h"
#include "verify/campaign/at_work.h"
#include "verify/campaign/closer_look.h"
#include "verify/campaign/every_order.h"
#include "verify/campaign/shrink_spec.h"
#include "verify/campaign/threads.h"

namespace ferry::verify {
namespace {

// Chooses one program in 32 for a closer look, and one pipeline (15, 31, ...) in 32.
bool is_looked_at_closely(std::uint64_t number) { return number % 32 == 0 || number % 512 == 15; }

Mutant who_is_tried(const CampaignOptions& options, std::uint64_t number) {
  if (options.canary) return *options.canary;
  const bool pipeline = options.orders || (number % 16 == 15 && options.sizes == Sizes::kMixed);
  return no_mutant(pipeline ? MutantPart::kPipeline : MutantPart::kOffload);
}

// Returns true if the program's own code may free a tensor that another stream still reads. After a
// failure it does not reach its own wait for that stream. A random order of the device would show
// this as a fault, but it is not a fault of the core.
bool is_careless(const DrawnRun& drawn) {
  const Recipe& recipe = drawn.spec.trial.recipe;
  return !drawn.spec.scheduler && (drawn.failed || recipe.failure != StepFailure::kNone) &&
         std::any_of(recipe.layers.begin(), recipe.layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::kSideStream; });
}

SchedulerDraws scheduler_draws(const CampaignOptions& options) {
  return {.usual = options.usual, .sizes = options.sizes};
}

// Tries program `number` with all combinations of answers, until `late` returns true.
DrawnRun try_every_way(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                       const std::function<bool()>& late) {
  Draws draws(options.seed, number);
  DrawnRun drawn;
  drawn.spec = options.scheduler
                   ? draw_spec(*options.scheduler, number, draws, scheduler_draws(options))
                   : draw_spec(*options.core, who_is_tried(options, number), draws, options.sizes);
  drawn.spec.trial.recipe.failure =
      StepFailure::kNone;  // a failing program may have unusual failures only
  drawn.runs = 0;
  OperationCount count(coverage);
  choices::Enumeration all(
      {.deviations = *options.deviations,
       .failures = !options.scheduler || options.scheduler->survives_failures});
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

DrawnRun try_every_order(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                         const std::function<bool()>& late) {
  Draws draws(options.seed, number);
  OperationCount count(coverage);
  return try_every_order(
      in_few_turns(draw_spec(*options.core, who_is_tried(options, number), draws)), *options.orders,
      &count, late);
}

DrawnRun try_number(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                    const std::function<bool()>& late) {
  if (options.orders) return try_every_order(options, number, coverage, late);
  if (options.deviations) return try_every_way(options, number, coverage, late);
  return try_program(options, number, coverage);
}

}  // namespace

DrawnRun try_program(const CampaignOptions& options, std::uint64_t number, Coverage& coverage,
                     StreamOpConsumer* watch) {
  OperationCount count(coverage, watch);
  DrawnRun drawn = options.scheduler ? try_drawn(*options.scheduler, options.seed, number,
                                                 scheduler_draws(options), &count)
                                     : try_drawn(*options.core, who_is_tried(options, number),
                                                 options.seed, number, &count, options.sizes);
  if (is_looked_at_closely(number) && !drawn.verdict && !is_careless(drawn)) {
    drawn.verdict = look_closer(drawn.spec, coverage);
  }
  return drawn;
}

double Deadline::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool Deadline::is_late() const {
  return (options_.seconds > 0 && seconds() > options_.seconds) ||
         (options_.stop && options_.stop());
}

std::uint64_t block_size(const CampaignOptions& options) {
  constexpr std::uint64_t kBlock = 16;
  return options.deviations || options.orders ? 1 : kBlock;  // one program takes as long as a block
}

std::uint64_t end_of(const CampaignOptions& options) {
  return options.programs > 0 ? static_cast<std::uint64_t>(options.programs) : ~std::uint64_t{0};
}

TriedBlock try_block(const CampaignOptions& options, const Deadline& deadline,
                     const ProgramRange& block) {
  TriedBlock tried{.block = block, .coverage = {}, .failure = {}};
  for (std::uint64_t number = block.first; number < block.end && !deadline.is_late(); ++number) {
    const AtWork work(number);
    DrawnRun drawn =
        try_number(options, number, tried.coverage, [&deadline] { return deadline.is_late(); });
    tried.coverage.add(drawn);
    if (!drawn.verdict) continue;
    // If the user stopped the campaign, the program is not shrunk. Its replay line shrinks it
    // later.
    const bool stopped = options.stop && options.stop();
    tried.failure =
        Failure{number, stopped ? std::move(drawn.spec) : shrink_spec(drawn.spec, *drawn.verdict),
                *drawn.verdict};
    break;
  }
  return tried;
}

Campaign run_campaign(const CampaignOptions& options) {
  constexpr std::chrono::milliseconds kPause(200);
  const Deadline deadline(options);
  Ledger ledger(
      end_of(options), block_size(options), [&deadline] { return deadline.is_late(); },
      options.from);
  Threads threads(options.jobs, [&](const std::atomic<bool>& failed) {
    while (!failed) {
      const std::optional<ProgramRange> block = ledger.take();
      if (!block) break;
      ledger.give(try_block(options, deadline, *block));
    }
  });
  while (!threads.ended_within(kPause)) {
    if (options.progress) options.progress(ledger, deadline.seconds());
  }
  if (options.ended) options.ended(ledger);
  return {ledger.coverage(), deadline.seconds(), ledger.failure()};
}

}  // namespace ferry::verify
