// Every scheduler of the registry on random steps: what is faulty is caught, by the oracle that
// fits its cause, and what is fixed is clean.
#include "verify/schedulers/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "verify/hunted/try_scheduler.h"

namespace ferry::verify::schedulers {

void PrintTo(const SchedulerEntry& entry, std::ostream* out) { *out << entry.name; }

namespace {

constexpr std::uint64_t kHunt = 100;   // programs in which a fault must show
constexpr std::uint64_t kClean = 300;  // and in which nothing may

template <class Predicate>
std::vector<SchedulerEntry> entries(Predicate&& predicate) {
  std::vector<SchedulerEntry> found;
  std::copy_if(schedulers().begin(), schedulers().end(), std::back_inserter(found), predicate);
  return found;
}
bool is_faulty(const SchedulerEntry& entry) { return entry.faulty; }
bool is_fixed(const SchedulerEntry& entry) { return !entry.faulty; }
bool has_fix(const SchedulerEntry& entry) { return !entry.fixed.empty(); }

std::string test_name(const testing::TestParamInfo<SchedulerEntry>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class FaultyScheduler : public testing::TestWithParam<SchedulerEntry> {};

TEST_P(FaultyScheduler, IsCaughtByTheOracleThatFitsItsCause) {
  const SchedulerEntry& entry = GetParam();
  const HuntedScheduler& scheduler = *find_hunted(entry.name);
  for (std::uint64_t i = 0; i < kHunt; ++i) {
    const auto verdict = try_scheduler(scheduler, scheduler_step(scheduler, i));
    if (!verdict) continue;
    EXPECT_TRUE(verdict->oracle == entry.oracle) << "program " << i << ": " << to_string(*verdict);
    return;
  }
  FAIL() << "nothing showed";
}

INSTANTIATE_TEST_SUITE_P(Registry, FaultyScheduler, testing::ValuesIn(entries(is_faulty)),
                         test_name);

class RepairedScheduler : public testing::TestWithParam<SchedulerEntry> {};

// So it is the fault that is caught, and not what the steps ask.
TEST_P(RepairedScheduler, IsCleanOnTheStepsThatShowedTheFault) {
  const HuntedScheduler& faulty = *find_hunted(GetParam().name);
  HuntedScheduler fixed = *find_hunted(GetParam().fixed);
  fixed.limit = faulty.limit;
  fixed.program = faulty.program;
  fixed.moves_all = faulty.moves_all;
  for (std::uint64_t i = 0; i < kHunt; ++i) {
    const auto verdict = try_scheduler(fixed, scheduler_step(fixed, i));
    EXPECT_FALSE(verdict) << "program " << i << ": " << verdict->words;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, RepairedScheduler, testing::ValuesIn(entries(has_fix)),
                         test_name);

class FixedScheduler : public testing::TestWithParam<SchedulerEntry> {};

TEST_P(FixedScheduler, IsClean) {
  const HuntedScheduler& scheduler = *find_hunted(GetParam().name);
  for (std::uint64_t i = 0; i < kClean; ++i) {
    const auto verdict = try_scheduler(scheduler, scheduler_step(scheduler, i));
    ASSERT_FALSE(verdict) << "program " << i << ": " << to_string(*verdict);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, FixedScheduler, testing::ValuesIn(entries(is_fixed)), test_name);

TEST(RegistryTest, EachNameIsOneEntrys) {
  std::set<std::string_view> names;
  for (const SchedulerEntry& entry : schedulers()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(find_scheduler(entry.name), &entry);
  }
  EXPECT_EQ(find_scheduler("none"), nullptr);
}

TEST(RegistryTest, AFixedCounterpartIsThere) {
  for (const SchedulerEntry& entry : schedulers()) {
    if (entry.fixed.empty()) continue;
    const SchedulerEntry* fixed = find_scheduler(entry.fixed);
    ASSERT_NE(fixed, nullptr) << entry.name;
    EXPECT_FALSE(fixed->faulty) << entry.name;
  }
}

TEST(RegistryTest, AStepDependsOnItsNumberAlone) {
  for (const SchedulerEntry& entry : schedulers()) {
    const HuntedScheduler& scheduler = *find_hunted(entry.name);
    const std::string first = to_text(scheduler_step(scheduler, 7).program);
    EXPECT_NE(first, to_text(scheduler_step(scheduler, 8).program)) << entry.name;
    EXPECT_EQ(first, to_text(scheduler_step(scheduler, 7).program)) << entry.name;
  }
}

// Replay lines have what is left of a recipe, and limits are taken of that again.
TEST(RegistryTest, LimitsTakenTwiceAreAsTakenOnce) {
  for (const SchedulerEntry& entry : schedulers()) {
    const HuntedScheduler& scheduler = *find_hunted(entry.name);
    if (scheduler.program) continue;
    for (std::uint64_t i = 0; i < 200; ++i) {
      choices::Draws draws(0, i);
      Trial trial;
      trial.recipe = draw_recipe(draws);
      const std::string once = to_text(scheduler_step(scheduler, trial, i).program);
      limit(scheduler, trial);
      EXPECT_EQ(once, to_text(scheduler_step(scheduler, trial, i).program)) << entry.name;
    }
  }
}

}  // namespace
}  // namespace ferry::verify::schedulers
