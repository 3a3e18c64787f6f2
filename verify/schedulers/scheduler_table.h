// The table of schedulers of other systems, for `ferry verify --schedulers`: which oracle caught
// which fault, after how many programs, and if the fixed ones are clean.
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
  std::int64_t programs = 2000;         // for an entry that must be clean
  std::int64_t programs_faulty = 1000;  // the maximum for an entry that must be caught
  int jobs = 1;
  std::function<void(std::string_view done)> progress;  // may run on any thread, one call at a time
  std::function<bool()> stop;  // called on every thread; true: unfinished rows are left out
};

struct SchedulerRow {
  const SchedulerEntry* entry = nullptr;
  std::optional<Oracle> caught_by;  // none: no oracle objected
  std::int64_t programs = 0;
  std::optional<std::int64_t> counterexample_ops;  // device operations
  std::string replay;

  // Returns false if the right oracle caught a faulty entry, or none objected to a fixed one.
  bool wrong() const { return caught_by != (entry->faulty ? entry->oracle : std::nullopt); }
};

std::vector<SchedulerRow> scheduler_table(std::span<const SchedulerEntry* const> entries,
                                          const SchedulerTableOptions& options);

}  // namespace ferry::verify::schedulers
