#include "real/train/policy.h"

#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "formats/decision_log.h"
#include "formats/plan.h"
#include "real/train/workload.h"

namespace ferry::real::train {

OffloadOptions offload_options(const Options& options) {
  OffloadOptions result;
  result.device(device(options)).disk(options.disk);
  result.keep_when_full(options.keep_when_full);
  result.decisions(!options.decisions.empty()).trace(!options.trace.empty());
  result.warn([](const std::string& text) { fmt::print(stderr, "ferry: {}\n", text); });
  if (options.disk_bytes_max) result.disk_bytes_max(*options.disk_bytes_max);
  if (options.window) result.window(*options.window);
  if (options.prefetch) result.prefetch(*options.prefetch);
  if (options.min_bytes) result.min_bytes(*options.min_bytes);
  return result;
}

Policy::Policy(const Options& options, Workload& workload) : trace_(options.trace) {
  for (const auto& [device, offload] : workload.stage_offloads()) {
    std::filesystem::path decisions = options.decisions;
    if (!decisions.empty()) decisions += "." + std::to_string(device);
    add(offload, decisions);
  }
  if (options.policy == PolicyKind::kKeep || options.policy == PolicyKind::kCheckpoint) return;
  const OffloadOptions offload = offload_options(options);
  guards_ = true;
  add(options.planned ? Offload(*options.planned, offload) : Offload(offload), options.decisions);
  moving_.front().offload.exempt(workload.module());
}

void Policy::add(Offload offload, const std::filesystem::path& decisions) {
  Moving moving{std::move(offload), nullptr};
  if (!decisions.empty()) {
    moving.decisions = std::make_unique<AtomicFile>(decisions);
    moving.decisions->write(decision_header(moving.offload.core_options()));
  }
  moving_.push_back(std::move(moving));
}

std::unique_ptr<OffloadGuard> Policy::guard() {
  return guards_ ? std::make_unique<OffloadGuard>(moving_.front().offload) : nullptr;
}

std::int64_t Policy::end_step() {
  std::int64_t bytes = 0;
  for (Moving& moving : moving_) {
    write_decisions(moving);
    const OffloadStatistics now = moving.offload.statistics();
    bytes += now.offloaded_bytes + now.reloaded_bytes;
  }
  return bytes - std::exchange(moved_bytes_, bytes);
}

void Policy::write_decisions(Moving& moving) {
  if (!moving.decisions) return;
  std::string lines;
  for (const Decision& decision : moving.offload.take_decisions()) {
    lines += decision_line(decision);
  }
  moving.decisions->write(lines);
}

void Policy::finish() {
  for (Moving& moving : moving_) {
    if (moving.decisions) moving.decisions->commit();
  }
  if (guards_ && !trace_.empty()) moving_.front().offload.write_trace(trace_);
}

}  // namespace ferry::real::train
