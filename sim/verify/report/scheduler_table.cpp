#include "sim/verify/report/scheduler_table.h"

#include <mutex>
#include <optional>
#include <utility>

#include "sim/verify/campaign/attempt.h"
#include "sim/verify/campaign/parallel.h"
#include "sim/verify/report/report.h"

namespace ferry::verify {
namespace {

// None where it was stopped.
std::optional<SchedulerRow> try_out(const schedulers::SchedulerEntry& entry,
                                    const SchedulerTableOptions& options) {
  SchedulerRow row;
  row.entry = &entry;
  const std::int64_t most = entry.faulty ? options.programs_faulty : options.programs;
  while (row.programs < most) {
    if (options.stop && options.stop()) return std::nullopt;
    const auto number = static_cast<std::uint64_t>(row.programs++);
    const Tried tried = try_drawn(entry, options.seed, number);
    if (!tried.verdict) continue;
    const Report report = explain(shrink(tried.attempt, *tried.verdict));
    row.caught_by = tried.verdict->oracle;
    row.counterexample_ops = report.device_operations;
    row.replay = to_line(report.attempt);
    break;
  }
  return row;
}

}  // namespace

std::vector<SchedulerRow> scheduler_table(
    std::span<const schedulers::SchedulerEntry* const> entries,
    const SchedulerTableOptions& options) {
  std::vector<std::optional<SchedulerRow>> tried(entries.size());
  std::mutex mutex;
  parallel_for(entries.size(), options.jobs, [&](std::size_t i) {
    tried[i] = try_out(*entries[i], options);
    const std::lock_guard lock(mutex);
    if (tried[i] && options.progress) options.progress(entries[i]->name);
  });
  std::vector<SchedulerRow> rows;
  for (std::optional<SchedulerRow>& row : tried) {
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace ferry::verify
