// The table of the field's schedulers shows which oracle caught which fault, and how soon; and that
// the fixed ones are clean.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/schedulers/registry.h"

namespace ferry::verify::schedulers {

struct SchedulerTableOptions {
  std::uint64_t seed = 0;
  std::int64_t programs = 2000;         // for one that must be clean
  std::int64_t programs_faulty = 1000;  // at most, for one that must be caught
  int jobs = 1;
  std::function<void(std::string_view done)> progress;  // from any thread, one at a time
  std::function<bool()> stop;  // on every thread: true leaves out the rows that are not ready
};

struct SchedulerRow {
  const SchedulerEntry* entry = nullptr;
  std::optional<Oracle> caught_by;  // none: no oracle objected
  std::int64_t programs = 0;
  std::optional<std::int64_t> counterexample_ops;  // device operations
  std::string replay;

  // A faulty one must be caught by the oracle that fits its cause, a fixed one by none.
  bool wrong() const { return caught_by != (entry->faulty ? entry->oracle : std::nullopt); }
};

std::vector<SchedulerRow> scheduler_table(std::span<const SchedulerEntry* const> entries,
                                          const SchedulerTableOptions& options);

}  // namespace ferry::verify::schedulers
