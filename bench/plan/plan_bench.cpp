// What `best` costs, with its certificate, for one budget on a Titan V. It should grow as the
// program does. P: the budget in hundredths of what keeping everything reserves; M: 1 has modules.
//
//   BM_Chain/N/P/M   a chain of N stages, each of them a module
//   BM_Graph/N/P/M   a graph of N operators, some of which read several others; eight are a module
//
// `slowdown` is the plan's step over keep's, `bound` that of the certificate, both in thousandths.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "plan/planner.h"
#include "scenarios/hardware.h"
#include "tests/sim/support/graphs.h"

namespace ferry::bench {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void plan_part(benchmark::State& state, const Program& program) {
  const Hardware card = find_hardware("titan-v");
  plan::PlanRequest request;
  sim::SimulationOptions options;
  options.check = false;
  request.budget_bytes =
      sim::simulate(program, card, options).device_reserved_bytes / 100 * state.range(1);
  request.policies = {Policy::kBest};
  for (auto _ : state) {
    const plan::PlanResult result = plan::plan(program, card, request);
    if (!result.rows.front().is_answer()) state.SkipWithError("no plan");
    state.counters["slowdown"] = static_cast<double>(
        plan::slowdown_permille(result.rows.front().simulation.step_ns, result.keep_ns));
    state.counters["bound"] = static_cast<double>(
        plan::slowdown_permille(result.certificate->step_ns.value_or(0), result.keep_ns));
  }
}

void BM_Chain(benchmark::State& state) {
  const auto stages = static_cast<std::size_t>(state.range(0));
  plan_part(state, test::chain_of(test::random_stages(stages, 1), kMiB, state.range(2) != 0));
}
void BM_Graph(benchmark::State& state) {
  plan_part(state,
            test::random_graph(static_cast<std::size_t>(state.range(0)), 1, state.range(2) != 0));
}

void sizes(benchmark::internal::Benchmark* benchmark, const std::vector<std::int64_t>& all) {
  if (std::getenv("FERRY_BENCH_SMOKE")) {
    benchmark->Args({40, 50, 1});
    return;
  }
  for (const std::int64_t size : all) {
    for (const std::int64_t percent : {50, 20}) {
      for (const std::int64_t modules : {0, 1}) benchmark->Args({size, percent, modules});
    }
  }
}
BENCHMARK(BM_Chain)->Apply([](auto* benchmark) {
                     sizes(benchmark, {339, 1'000});
                   }) -> Unit(benchmark::kMillisecond);
BENCHMARK(BM_Graph)->Apply([](auto* benchmark) {
                     sizes(benchmark, {1'000, 8'000, 16'000});
                   }) -> Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ferry::bench
