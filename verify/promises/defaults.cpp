#include "verify/promises/defaults.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shared/pipeline/stage.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/rules.h"
#include "verify/promises/figures.h"

namespace ferry::verify {
namespace {

constexpr std::int64_t kHalfGiB = std::int64_t{512} * 1024 * 1024;
constexpr std::int64_t kNoBound = 0x7fff'ffff'ffff'ffff;

std::optional<Verdict> judge_offload(const CoreOptions& ours, const CoreOptions& trl) {
  if (auto wrong =
          first_wrong(Oracle::kError, "by default an offloader's",
                      {{"host memory", number(ours.host_memory), number(HostMemory::kPinned)},
                       {"copy streams", number(ours.copy_streams), number(CopyStreams::kTwo)},
                       {"reload pool", number(ours.reload_pool), number(ReloadPool::kConsumer)},
                       {"bytes_min", ours.bytes_min, 1024},
                       {"window_packs", ours.window_packs, kNoBound},
                       {"window_bytes", ours.window_bytes, kHalfGiB},
                       {"prefetch_bytes", ours.prefetch_bytes, kHalfGiB},
                       {"prefetch_packs", ours.prefetch_packs, kNoBound},
                       {"hold_bytes", ours.hold_bytes, kHalfGiB},
                       {"keep_when_full", ours.keep_when_full, 0},
                       {"packs that may not move", number(ours.offload.size()), 0},
                       {"host_warn_percent", ours.host_warn_percent, 60},
                       {"listeners", (ours.warn ? 1 : 0) + (ours.log ? 1 : 0), 0}})) {
    return wrong;
  }
  return first_wrong(Oracle::kError, "of TRL's options",
                     {{"host memory", number(trl.host_memory), number(HostMemory::kPinned)},
                      {"copy streams", number(trl.copy_streams), number(CopyStreams::kOne)},
                      {"reload pool", number(trl.reload_pool), number(ReloadPool::kCopyStream)},
                      {"bytes_min", trl.bytes_min, 1024},
                      {"window_packs", trl.window_packs, 5},
                      {"window_bytes", trl.window_bytes, kNoBound},
                      {"prefetch_bytes", trl.prefetch_bytes, 0},
                      {"prefetch_packs", trl.prefetch_packs, kNoBound},
                      {"hold_bytes", trl.hold_bytes, 0},
                      {"keep_when_full", trl.keep_when_full, 0},
                      {"host_warn_percent", trl.host_warn_percent, 60}});
}

std::optional<Verdict> judge_checkpoints(const CoreCheckpointOptions& options) {
  const CheckpointContext context;
  const CorePipelineOptions pipeline;
  return first_wrong(
      Oracle::kError, "by default a checkpoint's",
      {{"early_stop", options.early_stop, 1},
       {"preserve_rng_state", options.preserve_rng_state, 1},
       {"determinism_check", number(options.determinism_check), number(DeterminismCheck::kDefault)},
       {"debug", options.debug, 0},
       {"context_fn", options.context_fn ? 1 : 0, 0},
       {"choices", number(options.choices.size()), 0},
       {"forward around it", context.checkpointing, 0},
       {"recompute around it", context.recomputing, 0},
       {"guards around it", (context.early_stop || context.debug || context.group) ? 1 : 0, 0},
       {"micro-batches", number(pipeline.checkpoint), number(CheckpointMode::kExceptLast)},
       {"preserve_rng_state in a pipeline", pipeline.preserve_rng_state, 1},
       {"stages", pipeline.checkpoints(0) && pipeline.checkpoints(7), 1}});
}

// A plan that is open leaves what it does not list to the calls themselves; in a closed one that is
// no checkpoint, and nothing in it.
std::optional<Verdict> judge_plans() {
  const SegmentPlan open;
  const SegmentPlan closed = SegmentPlan::closed();
  const SegmentPlan plain = SegmentPlan::closed(false);
  if (auto wrong = first_wrong(Oracle::kError, "of a plan of segments",
                               {{"checkpoint, where open,", open.checkpoint, 1},
                                {"unlisted, where open,", open.unlisted, 1},
                                {"checkpoint, where closed,", closed.checkpoint, 1},
                                {"unlisted, where closed,", closed.unlisted, 0},
                                {"checkpoint, where none is,", plain.checkpoint, 0},
                                {"unlisted, where none is,", plain.unlisted, 0}})) {
    return wrong;
  }
  for (const bool unlisted : {true, false}) {
    SegmentPlan plan;
    plan.unlisted = unlisted;
    plan.segments = {SegmentPlan(), SegmentPlan::closed(false)};
    PlannedSegments calls(std::make_shared<const SegmentPlan>(plan));
    const auto first = calls.next(), second = calls.next();
    const bool listed = first && first->checkpoint && first->unlisted && second &&
                        !second->checkpoint && !second->unlisted;
    for (int more = 0; more < 2; ++more) {
      const auto next = calls.next();
      const bool right = unlisted ? !next : next && !next->checkpoint && !next->unlisted;
      if (listed && right) continue;
      return Verdict{Oracle::kError, "a plan's segments are not given out in the order of calls"};
    }
  }
  return std::nullopt;
}

std::optional<Verdict> judge_rules() {
  for (std::size_t broken = 0; broken < kRules; ++broken) {
    const Rules rules = Rules::without(static_cast<Rule>(broken));
    for (std::size_t rule = 0; rule < kRules; ++rule) {
      if (rules.holds(static_cast<Rule>(rule)) == (rule != broken)) continue;
      return Verdict{Oracle::kError, "a rule holds that does not, or the other way round"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> judge_defaults(const CoreOptions& ours, const CoreOptions& trl,
                                      const CoreCheckpointOptions& checkpoint) {
  if (auto wrong = judge_offload(ours, trl)) return wrong;
  if (auto wrong = judge_checkpoints(checkpoint)) return wrong;
  if (auto wrong = judge_plans()) return wrong;
  return judge_rules();
}

}  // namespace ferry::verify
