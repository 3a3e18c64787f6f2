// The table of the field's schedulers: each row as it should be.
#include "verify/schedulers/scheduler_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::verify::schedulers {
namespace {

TEST(SchedulerTable, CatchesTheFaultyAndClearsTheFixed) {
  std::vector<const SchedulerEntry*> entries;
  for (const SchedulerEntry& entry : schedulers()) entries.push_back(&entry);
  SchedulerTableOptions options;
  options.programs = 200;
  std::int64_t faulty = 0;
  for (const SchedulerRow& row : scheduler_table(entries, options)) {
    EXPECT_FALSE(row.wrong()) << row.entry->name;
    if (!row.entry->faulty) continue;
    ++faulty;
    EXPECT_LE(row.programs, 100) << row.entry->name;
  }
  EXPECT_GE(faulty, 20);
}

}  // namespace
}  // namespace ferry::verify::schedulers
