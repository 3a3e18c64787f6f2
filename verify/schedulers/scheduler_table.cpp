#include "verify/schedulers/scheduler_table.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "formats/parallel.h"
#include "verify/campaign/drawn_run.h"
#include "verify/campaign/replay_line.h"
#include "verify/campaign/shrink_spec.h"
#include "verify/report/report.h"

namespace ferry::verify::schedulers {
namespace {

// Returns nothing if it was stopped.
std::optional<SchedulerRow> try_out(const SchedulerEntry& entry,
                                    const SchedulerTableOptions& options) {
  SchedulerRow row;
  row.entry = &entry;
  const HuntedScheduler& scheduler = *find_hunted(entry.name);
  const std::int64_t most = entry.faulty ? options.programs_faulty : options.programs;
  while (row.programs < most) {
    if (options.stop && options.stop()) return std::nullopt;
    const auto number = static_cast<std::uint64_t>(row.programs++);
    const DrawnRun drawn = try_drawn(scheduler, options.seed, number, {.usual = true});
    if (!drawn.verdict) continue;
    const Report report = explain(shrink_spec(drawn.spec, *drawn.verdict));
    row.caught_by = drawn.verdict->oracle;
    row.counterexample_ops = report.device_operations;
    row.replay = to_line(report.spec);
    break;
  }
  return row;
}

}  // namespace

std::vector<SchedulerRow> scheduler_table(std::span<const SchedulerEntry* const> entries,
                                          const SchedulerTableOptions& options) {
  std::vector<std::optional<SchedulerRow>> ready(entries.size());
  std::mutex mutex;
  const auto try_one = [&](std::size_t i) {
    ready[i] = try_out(*entries[i], options);
    const std::lock_guard lock(mutex);
    if (ready[i] && options.progress) options.progress(entries[i]->name);
  };
  in_parallel(entries.size(), try_one, static_cast<std::size_t>(std::max(options.jobs, 1)));
  std::vector<SchedulerRow> rows;
  for (std::optional<SchedulerRow>& row : ready) {
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace ferry::verify::schedulers
