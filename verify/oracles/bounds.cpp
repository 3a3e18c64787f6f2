#include "verify/oracles/bounds.h"

#include <algorithm>
#include <variant>

namespace ferry::verify {
namespace {

std::int64_t outputs_in(const Program& program, const Code& code,
                        const std::set<std::string>& ops) {
  std::int64_t outputs = 0;
  for (const Statement& statement : code.statements) {
    const auto* const op = std::get_if<Op>(&statement.action);
    if (op && ops.contains(op->name)) outputs += static_cast<std::int64_t>(op->out.size());
    const auto* const call = std::get_if<Call>(&statement.action);
    if (call) outputs += outputs_in(program, program.codes[call->code], ops);
  }
  return outputs;
}

}  // namespace

std::int64_t outputs_in_checkpoints(const Program& program, const std::set<std::string>& ops) {
  std::int64_t outputs = 0;
  if (ops.empty()) return outputs;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* const call = std::get_if<Call>(&statement.action);
      if (!call || call->recompute != Recompute::kCheckpoint) continue;
      outputs += outputs_in(program, program.codes[call->code], ops);
    }
  }
  return outputs;
}

std::optional<Verdict> judge_bounds(const CoreOptions& options, const OffloadStatistics& counts,
                                    const ProgramBounds& program) {
  const std::int64_t largest = program.largest;
  // A limit above the peak counts as the peak, so that no sum or product overflows.
  const std::int64_t forward = counts.forward_stash_peak_bytes;
  const std::int64_t backward = counts.backward_stash_peak_bytes;
  const bool automatic = options.window_bytes == kAutomatic;
  if (options.window_bytes != kUnlimited && !automatic &&
      forward > std::max(options.window_bytes, largest)) {
    return Verdict{Oracle::kBound, "the forward stash exceeds its window"};
  }
  if (options.window_tensors != kUnlimited &&
      forward > std::min(options.window_tensors, forward) * largest) {
    return Verdict{Oracle::kBound, "the forward stash exceeds its window in packs"};
  }
  // With the pool of the copy stream, the storages of a node and of the node before it are alive.
  const std::int64_t at_hand = options.reload_pool == ReloadPool::kConsumer ? 2 : 12 + program.kept;
  // A storage that is larger than the hold limit may be held in addition.
  const std::int64_t held_beside = options.hold_bytes > 0 && options.hold_bytes < largest ? 1 : 0;
  if (options.hold_bytes != kUnlimited && options.hold_bytes != kAutomatic &&
      options.prefetch_bytes != kAutomatic &&
      backward > std::min(options.prefetch_bytes, backward) +
                     std::min(options.hold_bytes, backward) + (at_hand + held_beside) * largest) {
    return Verdict{Oracle::kBound, "the backward stash exceeds its limit"};
  }
  return std::nullopt;
}

}  // namespace ferry::verify
