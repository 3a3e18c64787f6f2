// The field's races as they stand in scenarios/hazards: what the schedulers do today, to the byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/hazard_file.h"
#include "formats/text_file.h"
#include "verify/campaign/drawn_run.h"
#include "verify/campaign/shrink_spec.h"
#include "verify/report/hazard_of.h"
#include "verify/schedulers/registry.h"

namespace ferry::verify::schedulers {
namespace {

HazardFile hazard_of_entry(const SchedulerEntry& entry) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    const DrawnRun drawn = try_drawn(*find_hunted(entry.name), 0, number, {.usual = true});
    if (!drawn.verdict) continue;
    HazardFile hazard = hazard_of(limited(shrink_spec(drawn.spec, *drawn.verdict)));
    hazard.system = entry.system;
    hazard.what = entry.what;
    hazard.source = entry.source;
    return hazard;
  }
  return {};
}

// Written by `ferry verify --scheduler NAME --seed 0 --hazard scenarios/hazards/NAME.jsonl`.
TEST(RegistryHazards, AreWhatTheSchedulersDo) {
  int races = 0;
  for (const SchedulerEntry& entry : schedulers()) {
    if (entry.oracle != Oracle::kHappensBefore) continue;
    ++races;
    const auto path = std::filesystem::path(FERRY_SOURCE_DIR) / "scenarios/hazards" /
                      (std::string(entry.name) + ".jsonl");
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    EXPECT_EQ(to_text(hazard_of_entry(entry)), read_file(path)) << entry.name;
  }
  EXPECT_EQ(races, 10);
}

}  // namespace
}  // namespace ferry::verify::schedulers
