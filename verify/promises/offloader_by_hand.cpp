#include "verify/promises/offloader_by_hand.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/offload/bounds.h"
#include "shared/offload/offloader.h"
#include "verify/promises/by_hand.h"

namespace ferry::verify {
namespace {

using Offloader = ferry::Offloader<sim::SimDevice, sim::SimAutograd>;

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kPages = 1000;

std::string tenths(std::int64_t value) {
  return std::to_string(value / 10) + "." + std::to_string(value % 10);
}

// A host of 1,000 pages, of which some are in use.
sim::MachineOptions host(bool known) {
  sim::MachineOptions options;
  options.host_total_bytes = known ? kPages * kPage : 0;
  return options;
}

// Warns at the first unpack, once, where more than the share is in use, and says how much.
std::optional<Verdict> judge_warning(choices::Draws& draws, const HearsWarning& hears) {
  const bool known = !draws.one_in(4);
  ByHand hand({}, host(known));
  CoreOptions options;
  options.bytes_min = 1;
  options.window_packs = 1;
  options.host_warn_percent = draws.in(0, 100);
  const bool pinned = !draws.one_in(4), listens = !draws.one_in(4);
  if (!pinned) options.host_memory = HostMemory::kPageable;
  std::vector<std::string> warnings;
  std::vector<Decision> log;
  if (listens)
    options.warn = [&](const std::string& text) { warnings.push_back(hears ? hears(text) : text); };
  options.log = [&](const Decision& decision) { log.push_back(decision); };
  // As many pages as the share, or about as many.
  const std::int64_t pages =
      std::max<std::int64_t>(10 * options.host_warn_percent + draws.in(-2, 2), 2);
  auto block = hand.machine().allocate_host(Step::kHostAllocate, (pages - 1) * kPage);
  {
    Offloader offloader(hand.device(), hand.autograd(), options);
    const auto hooks = offloader.hooks();
    const sim::Tensor tensor = hand.run_op(0);
    for (int packs = 2; packs > 0; --packs) {
      const auto saved = hooks->pack(tensor);
      for (int unpacks = 2; unpacks > 0; --unpacks) saved->unpack();
    }
  }
  hand.machine().release_host(Step::kHostReturn, block, {});
  std::vector<std::string> must;
  if (known && pinned && listens && pages > 10 * options.host_warn_percent) {
    must = {tenths(pages) + "% of the host's memory is in use, more than " +
            std::to_string(options.host_warn_percent) +
            "%: page-locked memory for offloaded tensors may run out"};
  }
  if (warnings != must) {
    return Verdict{Oracle::kError, "of a host with " + tenths(pages) + "% in use it says: " +
                                       (warnings.empty() ? "nothing" : warnings.front())};
  }
  // Where nobody begins a forward, packs count from 0 in run 0.
  const Decision first{DecisionKind::kPack, 0, 0, 64};
  if (!log.empty() && log.front() == first) return std::nullopt;
  return Verdict{Oracle::kAccounts, "an offloader's first pack is logged as another one"};
}

// A bound that adapts is a sixteenth of what was on the host at once in this run or the one before,
// and at most 512 MiB.
std::optional<Verdict> judge_bounds(choices::Draws& draws) {
  CoreOptions options;
  options.window_bytes = options.hold_bytes = kAutomatic;
  options.prefetch_bytes = 7;
  Bounds bounds(options);
  std::vector<std::int64_t> peaks = {0, 0};  // by run
  std::int64_t now = 0;
  for (int step = 0; step < 8; ++step) {
    const int what = draws.in(0, 4);
    if (what == 0) {
      bounds.begin_run();
      peaks.push_back(now);
    } else if (what == 1 && now > 0) {
      const std::int64_t bytes = std::min<std::int64_t>(now, 997 * draws.in(1, 1000));
      bounds.returned(bytes);
      now -= bytes;
    } else {
      const std::int64_t bytes = std::int64_t{997} * draws.in(1, draws.one_in(4) ? 1 << 24 : 1000);
      bounds.sent(bytes);
      now += bytes;
      peaks.back() = std::max(peaks.back(), now);
    }
    const std::int64_t peak = std::max(peaks.back(), peaks[peaks.size() - 2]);
    const std::int64_t must = std::min(peak / 16, std::int64_t{512} * 1024 * 1024);
    if (bounds.window() == must && bounds.hold() == must && bounds.prefetch() == 7) continue;
    return Verdict{Oracle::kBound, "a bound that adapts is " + std::to_string(bounds.window()) +
                                       ", not " + std::to_string(must)};
  }
  return std::nullopt;
}

// Options without sense are refused by the offloader itself.
std::optional<Verdict> judge_refusal() {
  ByHand hand;
  CoreOptions options;
  options.window_packs = 0;
  try {
    const Offloader offloader(hand.device(), hand.autograd(), options);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  return Verdict{Oracle::kError, "an offloader takes options without sense"};
}

}  // namespace

std::optional<Verdict> judge_offloader(choices::Draws& draws, const HearsWarning& hears) {
  if (auto wrong = judge_refusal()) return wrong;
  if (auto wrong = judge_bounds(draws)) return wrong;
  return judge_warning(draws, hears);
}

}  // namespace ferry::verify
