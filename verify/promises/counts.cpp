#include "verify/promises/counts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shared/adaptors/observed.h"
#include "shared/replay/replay_state.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/device.h"
#include "shared/seam/options.h"
#include "verify/promises/figures.h"

namespace ferry::verify {
namespace {

using OffloadCount = std::int64_t OffloadStatistics::*;
// What adds up over time as well.
constexpr std::array<OffloadCount, 16> kCounts = {&OffloadStatistics::packs,
                                                  &OffloadStatistics::kept,
                                                  &OffloadStatistics::full,
                                                  &OffloadStatistics::shared,
                                                  &OffloadStatistics::offloaded_count,
                                                  &OffloadStatistics::offloaded_bytes,
                                                  &OffloadStatistics::reloaded_count,
                                                  &OffloadStatistics::reloaded_bytes,
                                                  &OffloadStatistics::prefetched_count,
                                                  &OffloadStatistics::stash_hits,
                                                  &OffloadStatistics::target_hits,
                                                  &OffloadStatistics::vain_count,
                                                  &OffloadStatistics::vain_bytes,
                                                  &OffloadStatistics::compute_waits,
                                                  &OffloadStatistics::stalled_ns,
                                                  &OffloadStatistics::quarantined};
// Of the present.
constexpr std::array<OffloadCount, 4> kSizes = {
    &OffloadStatistics::forward_stash_bytes, &OffloadStatistics::forward_stash_peak_bytes,
    &OffloadStatistics::backward_stash_bytes, &OffloadStatistics::backward_stash_peak_bytes};

std::optional<Verdict> judge_sums(const Add& add) {
  static_assert(sizeof(OffloadStatistics) ==
                (kCounts.size() + kSizes.size()) * sizeof(std::int64_t));
  const OffloadStatistics none;
  OffloadStatistics now, before;
  std::int64_t next = 1;
  for (const OffloadCount count : kCounts) now.*count = 1000 + next++, before.*count = next++;
  for (const OffloadCount size : kSizes) now.*size = 1000 + next++, before.*size = next++;
  const OffloadStatistics sum = add(now, before);
  const OffloadStatistics since = now.since(before);
  for (const OffloadCount count : kCounts) {
    if (auto wrong = first_wrong(Oracle::kAccounts, "of offloaders' counts",
                                 {{"the first", none.*count, 0},
                                  {"the sum", sum.*count, now.*count + before.*count},
                                  {"the difference", since.*count, now.*count - before.*count}})) {
      return wrong;
    }
  }
  for (const OffloadCount size : kSizes) {
    if (auto wrong = first_wrong(Oracle::kAccounts, "of offloaders' stashes",
                                 {{"the first", none.*size, 0},
                                  {"the sum", sum.*size, now.*size + before.*size},
                                  {"the present", since.*size, now.*size}})) {
      return wrong;
    }
  }
  return std::nullopt;
}

std::optional<Verdict> judge_zeros() {
  const CheckpointStatistics checkpoints;
  const ReplayStatistics replays;
  const DeviceCall call;
  const Decision decision;
  return first_wrong(Oracle::kAccounts, "before anything is counted,",
                     {{"segments", checkpoints.segments, 0},
                      {"recomputes", checkpoints.recomputes, 0},
                      {"stopped_early", checkpoints.stopped_early, 0},
                      {"saved", checkpoints.saved, 0},
                      {"kept", checkpoints.kept, 0},
                      {"passed_on", checkpoints.passed_on, 0},
                      {"alive", checkpoints.alive, 0},
                      {"spans", replays.spans, 0},
                      {"spans alive", replays.alive, 0},
                      {"calls", replays.calls, 0},
                      {"calls_left", replays.calls_left, 0},
                      {"saved for spans", replays.saved, 0},
                      {"passed_on by spans", replays.passed_on, 0},
                      {"held", replays.held, 0},
                      {"replays", replays.replays, 0},
                      {"calls_replayed", replays.calls_replayed, 0},
                      {"a call's bytes", call.bytes, 0},
                      {"a decision's run", number(decision.run), 0},
                      {"a decision's pack", number(decision.pack), 0},
                      {"a decision's bytes", decision.bytes, 0},
                      {"an extent's begin", Extent().begin, 0},
                      {"an extent's end", Extent().end, 0},
                      {"the host's used bytes", HostUsage().used_bytes, 0},
                      {"the host's bytes", HostUsage().total_bytes, 0}});
}

// An extent covers another one whose every byte is its own.
std::optional<Verdict> judge_extents() {
  constexpr std::int64_t kBytes = 4;
  for (std::int64_t code = 0; code < kBytes * kBytes * kBytes * kBytes; ++code) {
    const Extent a{code % kBytes, code / 4 % kBytes}, b{code / 16 % kBytes, code / 64};
    if (a.begin > a.end || b.begin >= b.end) continue;
    bool covers = true;
    for (std::int64_t byte = b.begin; byte < b.end; ++byte) {
      covers = covers && a.begin <= byte && byte < a.end;
    }
    if (a.covers(b) == covers && a.bytes() == a.end - a.begin) continue;
    return Verdict{Oracle::kAccounts, "an extent covers bytes that it has not, or has other ones"};
  }
  return std::nullopt;
}

// A forward numbers its segments from 0, and logs their recomputes by these numbers; groups of
// backwards have numbers of their own.
std::optional<Verdict> judge_numbers() {
  std::vector<Decision> logged;
  const auto log = [&logged](const Decision& each) { logged.push_back(each); };
  const auto told = std::make_shared<CheckpointRun>(7, log);
  const NumberedSegment first(told), second(told);
  second.recomputes();
  first.recomputes();
  second.recomputes();
  const std::vector<Decision> must = {{DecisionKind::kRecompute, 7, 1, 0},
                                      {DecisionKind::kRecompute, 7, 0, 0},
                                      {DecisionKind::kRecompute, 7, 1, 0}};
  const NumberedSegment untold(std::make_shared<CheckpointRun>(7, nullptr)), alone(nullptr);
  untold.recomputes();
  alone.recomputes();
  if (logged != must) {
    return Verdict{Oracle::kAccounts, "recomputes are logged by other numbers of their segments"};
  }
  const ExecGroup group, other, third;
  if (group.id() != other.id() && group.id() != third.id() && other.id() != third.id()) {
    return std::nullopt;
  }
  return Verdict{Oracle::kAccounts, "two groups of backwards have one number"};
}

}  // namespace

std::optional<Verdict> judge_counting(const Add& add) {
  if (auto wrong = judge_sums(add)) return wrong;
  if (auto wrong = judge_zeros()) return wrong;
  if (auto wrong = judge_extents()) return wrong;
  return judge_numbers();
}

}  // namespace ferry::verify
