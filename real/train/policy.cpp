#include "real/train/policy.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "formats/decision_log.h"
#include "formats/plan_file.h"
#include "real/train/workload.h"

namespace ferry::real::train {

namespace {

OffloadOptions offload_options(const Options& options) {
  OffloadOptions result;
  result.device(device(options)).disk(options.disk);
  result.keep_when_full(options.keep_when_full);
  result.log(!options.decisions.empty()).trace(!options.trace.empty());
  result.warn([](const std::string& text) { fmt::print(stderr, "ferry: {}\n", text); });
  if (options.disk_bytes_max) result.disk_bytes_max(*options.disk_bytes_max);
  if (options.window_bytes) result.window(*options.window_bytes);
  if (options.prefetch_bytes) result.prefetch(*options.prefetch_bytes);
  if (options.bytes_min) result.min_bytes(*options.bytes_min);
  return result;
}

}  // namespace

Policy::Policy(const Options& options, const torch::nn::Module& module) : trace_(options.trace) {
  if (options.policy == PolicyKind::kKeep || options.policy == PolicyKind::kCheckpoint) return;
  const OffloadOptions offload = offload_options(options);
  std::optional<Plan> plan;
  if (!options.plan.empty()) plan = read_plan(options.plan);
  offload_.emplace(plan ? Offload(*plan, offload) : Offload(offload));
  offload_->exempt(module);
  if (options.decisions.empty()) return;
  decisions_.emplace(options.decisions);
  decisions_->write(decision_header(offload_->core_options()));
}

std::unique_ptr<OffloadGuard> Policy::guard() {
  return offload_ ? std::make_unique<OffloadGuard>(*offload_) : nullptr;
}

std::int64_t Policy::end_step() {
  if (!offload_) return 0;
  write_decisions();
  const OffloadStatistics now = offload_->statistics();
  const std::int64_t before = std::exchange(moved_bytes_, now.offloaded_bytes + now.reloaded_bytes);
  return moved_bytes_ - before;
}

void Policy::write_decisions() {
  if (!decisions_) return;
  std::string lines;
  for (const Decision& decision : offload_->take_log().decisions) lines += decision_line(decision);
  decisions_->write(lines);
}

void Policy::finish() {
  if (decisions_) decisions_->commit();
  if (offload_ && !trace_.empty()) offload_->write_trace(trace_);
}

}  // namespace ferry::real::train
