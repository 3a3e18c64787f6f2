// How many programs `ferry verify` tries a second, on one core: small ones of about 57 operations
// (the core's run and the one that keeps everything, both checked), and as campaigns draw them.
// Beside it, what a user would do instead to find a missing edge: run one drawn schedule of the
// same program and compare what is read.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/choices/strategies.h"
#include "sim/explore/explorer.h"
#include "verify/campaign/coverage.h"
#include "verify/core/core_trials.h"

namespace ferry::bench {
namespace {

using verify::core_trials;
using verify::Coverage;
using verify::no_mutant;
using verify::OperationCount;
using verify::try_drawn;

std::int64_t operations_of(std::uint64_t number) {
  Coverage coverage;
  OperationCount count(coverage);
  try_drawn(core_trials(), no_mutant(), 0, number, &count);
  return coverage.operations;
}

// Numbers of programs with 47 to 67 operations.
std::vector<std::uint64_t> small_programs(std::size_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 0; numbers.size() < count; ++number) {
    const std::int64_t operations = operations_of(number);
    if (operations >= 47 && operations <= 67) numbers.push_back(number);
  }
  return numbers;
}

void report(benchmark::State& state, const Coverage& coverage) {
  state.SetItemsProcessed(coverage.programs);
  state.counters["operations"] =
      static_cast<double>(coverage.operations) / static_cast<double>(coverage.programs);
}

void BM_SmallPrograms(benchmark::State& state) {
  const std::vector<std::uint64_t> numbers = small_programs(64);
  Coverage coverage;
  OperationCount count(coverage);
  for (auto _ : state) {
    const std::uint64_t number = numbers[static_cast<std::size_t>(coverage.programs) % 64];
    benchmark::DoNotOptimize(try_drawn(core_trials(), no_mutant(), 0, number, &count));
    ++coverage.programs;
  }
  report(state, coverage);
}
BENCHMARK(BM_SmallPrograms);

void BM_DrawnPrograms(benchmark::State& state) {
  Coverage coverage;
  OperationCount count(coverage);
  for (auto _ : state) {
    benchmark::DoNotOptimize(try_drawn(core_trials(), no_mutant(), 0,
                                       static_cast<std::uint64_t>(coverage.programs), &count));
    ++coverage.programs;
  }
  report(state, coverage);
}
BENCHMARK(BM_DrawnPrograms);

// One order of the device's, drawn and run: it finds what it happens to meet.
void BM_OneSchedule(benchmark::State& state) {
  explore::Recording recording;
  try_drawn(core_trials(), no_mutant(), 0, small_programs(1).front(), &recording);
  const explore::Explorer explorer(recording);
  std::uint64_t seed = 0;
  for (auto _ : state) {
    choices::RandomChoices choices(seed++);
    const auto order = explore::draw_order(explorer.graph(), choices);
    benchmark::DoNotOptimize(explorer.difference(order, explore::Evidence::kRead));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(seed));
}
BENCHMARK(BM_OneSchedule);

}  // namespace
}  // namespace ferry::bench
