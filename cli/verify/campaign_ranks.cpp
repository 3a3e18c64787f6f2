#include "cli/verify/campaign_ranks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "cli/verify/tried_text.h"

namespace ferry::cli {
namespace {

// A block is at least some milliseconds of work, and there are enough blocks that no rank waits
// long for the last one.
std::uint64_t block_size_over(const Ranks& ranks, const verify::CampaignOptions& options) {
  constexpr std::uint64_t kMost = 256, kShares = 16;
  const std::uint64_t least = verify::block_size(options);
  if (options.deviations || options.orders) return least;
  const auto threads = static_cast<std::uint64_t>(ranks.size()) *
                       static_cast<std::uint64_t>(std::max(options.jobs, 1));
  return std::clamp(verify::end_of(options) / (threads * kShares), least, kMost);
}

class Blocks final : public Pieces {
 public:
  explicit Blocks(verify::Ledger& ledger) : ledger_(ledger) {}
  std::optional<std::string> take() override {
    const std::optional<verify::ProgramRange> block = ledger_.take();
    if (!block) return std::nullopt;
    return to_text(*block);
  }
  void give(const std::string& done) override { ledger_.give(tried_from(done)); }
  bool is_waiting() const override { return ledger_.is_waiting(); }

 private:
  verify::Ledger& ledger_;
};

}  // namespace

verify::Campaign lead_campaign(Ranks& ranks, const verify::CampaignOptions& options) {
  const verify::Deadline deadline(options);
  verify::Ledger ledger(
      verify::end_of(options), block_size_over(ranks, options),
      [&deadline] { return deadline.is_late(); }, options.from);
  Blocks blocks(ledger);
  lead(ranks, blocks, campaign_crew(options), std::to_string(options.seed), options.stop,
       [&] { options.progress(ledger, deadline.seconds()); });
  if (options.ended) options.ended(ledger);
  return {ledger.coverage(), deadline.seconds(), ledger.failure()};
}

Crew campaign_crew(const verify::CampaignOptions& options) {
  struct Trial {
    explicit Trial(const verify::CampaignOptions& given) : options(given), deadline(options) {}
    const verify::CampaignOptions options;
    const verify::Deadline deadline;
  };
  // A rank gets one block more than it has threads, so that no thread waits for the next block. Not
  // with --every-way and --every-order, where a block takes long: at the end, a rank with two
  // blocks would keep others waiting that have none.
  return {.jobs = std::max(options.jobs, 1),
          .ahead = options.deviations || options.orders ? 0 : 1,
          .work = [trial = std::make_shared<const Trial>(options)](const std::string& piece) {
            return to_text(verify::try_block(trial->options, trial->deadline, block_from(piece)));
          }};
}

}  // namespace ferry::cli
