// What a pipeline costs the simulator: four stages of four layers, forward and backward.
//
//   BM_Pipeline/M/how    M micro-batches; how: 0 GPipe, 1 1F1B, 2 1F1B checked, 3 1F1B that
//                        recomputes
//
// `per_action_ns`, of one stage and one micro-batch in one direction, is to stay flat as M grows.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "bench/step.h"
#include "formats/stages.h"
#include "sim/run/pipeline_simulation.h"

namespace ferry::bench {
namespace {

constexpr std::size_t kStages = 4;

// Sixteen layers, each a module.
StagedProgram stages() {
  Builder b;
  const TypeId type = b.type({1'000'000});
  const Slot x = b.global(GlobalKind::kInput, type);
  std::vector<Slot> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(b.global(GlobalKind::kParameter, type));
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  Slot current = x;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const CodeId body = b.code(CodeKind::kBody, "Backward");
    const Slot gradient = b.argument(body);
    const Slot saved = b.saved(body);
    b.result(body, b.op(body, "grad_x", {gradient, saved}, type));
    b.result(body, b.op(body, "grad_w", {gradient, saved}, type));
    const std::string module = "layers." + std::to_string(i);
    const Slot y = b.slot(forward);
    b.add(forward, Module{module, true});
    b.add(forward, MakeNode{"Backward", b.node_id(), {current, weights[i]}, {y}, {current}, body});
    b.add(forward,
          Op{"linear", {current, weights[i]}, {y}, {type}, {}, 0, 4'000'000, 2'000'000, 0});
    if (current != x) b.add(forward, Free{{current}});
    b.add(forward, Module{module, false});
    current = y;
  }
  b.result(forward, current);
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  return cut_into_stages(b.program, {0, 4, 8, 12});
}

void BM_Pipeline(benchmark::State& state) {
  const StagedProgram staged = stages();
  const Hardware hardware = bench_hardware();
  sim::PipelineOptions options;
  options.devices = kStages;
  options.microbatches = static_cast<std::size_t>(state.range(0));
  if (state.range(1) == 0) options.schedule = ScheduleKind::kGpipe;
  options.check = state.range(1) == 2;
  if (state.range(1) == 3) options.policies.assign(kStages, StagePolicy::kCheckpoint);
  for (auto _ : state) {
    const sim::PipelineSimulation run = sim::simulate_pipeline(staged, hardware, options);
    if (!run.is_safe()) state.SkipWithError("not safe");
  }
  state.counters["per_action_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 2 * kStages *
                             static_cast<double>(state.range(0)) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  const bool smoke = std::getenv("FERRY_BENCH_SMOKE") != nullptr;
  for (const std::int64_t microbatches : {4, 32, 1'000, 30'000}) {
    if (smoke && microbatches > 32) break;
    for (const std::int64_t how : {0, 1, 2, 3}) benchmark->Args({microbatches, how});
  }
}
BENCHMARK(BM_Pipeline)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ferry::bench
