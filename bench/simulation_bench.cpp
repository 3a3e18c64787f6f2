// The whole simulator: tape, core, pools, engine; and with its checkers.
//
//   BM_Steps/N/checked     stream operations a second over N steps of one run (goal: near linear)
//   BM_WhatIf              whole simulations a second of one step of about 500 operations
//   BM_Hold/H              GPT-2 on an H100, its log-softmax larger than the bytes that are held;
//                          H: 0 that many, 1 no limit (`step_ns`, simulated: the same)
//   BM_PackUnpack          the core alone: one storage out and back, on the simulated device
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>

#include "bench/step.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "shared/offload/offloader.h"
#include "sim/gpu/device.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/script.h"

namespace ferry::bench {
namespace {

constexpr int kLayers = 42;

void BM_Steps(benchmark::State& state) {
  const Program program =
      with_microbatches(make_step(kLayers), state.range(0), MicrobatchOrder::kFbfb);
  const Hardware hardware = bench_hardware();
  sim::SimulationOptions options;
  options.offload = bench_options();
  options.check = state.range(1) != 0;
  std::int64_t operations = 0;
  for (auto _ : state) {
    const sim::Simulation run = sim::simulate(program, hardware, options);
    operations += run.operations;
    if (!run.hazards.empty() || !run.errors.empty()) state.SkipWithError("not safe");
  }
  state.SetItemsProcessed(operations);
  state.counters["ops"] = static_cast<double>(operations) / static_cast<double>(state.iterations());
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  const bool smoke = std::getenv("FERRY_BENCH_SMOKE") != nullptr;
  for (const std::int64_t steps : {2, 20, 200, 2'000, 20'000}) {
    if (smoke && steps > 20) break;
    for (const std::int64_t checked : {0, 1}) benchmark->Args({steps, checked});
  }
}
BENCHMARK(BM_Steps)->Apply(sizes)->Unit(benchmark::kMillisecond);

void BM_WhatIf(benchmark::State& state) {
  const Program program = make_step(kLayers);
  const Hardware hardware = bench_hardware();
  sim::SimulationOptions options;
  options.offload = bench_options();
  options.check = state.range(0) != 0;
  std::int64_t operations = 0;
  for (auto _ : state) operations = sim::simulate(program, hardware, options).operations;
  state.SetItemsProcessed(state.iterations());
  state.counters["ops"] = static_cast<double>(operations);
}
BENCHMARK(BM_WhatIf)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void BM_Hold(benchmark::State& state) {
  const Program program = load_program(find_program("gpt2"));
  sim::SimulationOptions options;
  options.offload = CoreOptions{};
  options.check = false;
  if (state.range(0) != 0) options.offload->hold_bytes = kUnlimited;
  sim::Time step_ns = 0;
  for (auto _ : state) step_ns = sim::simulate(program, find_hardware("h100"), options).step_ns;
  state.counters["step_ns"] = static_cast<double>(step_ns);
}
BENCHMARK(BM_Hold)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// Packs a storage, drops it, and brings it back within a graph task.
void BM_PackUnpack(benchmark::State& state) {
  sim::Machine machine{sim::MachineOptions{}};
  test::Script script;
  CoreOptions options = bench_options();
  options.window_bytes = 0;
  options.prefetch_bytes = 0;
  const Offloader<sim::SimDevice, test::ScriptAutograd> offloader(
      sim::SimDevice(machine), test::ScriptAutograd(script), options);
  for (auto _ : state) {
    auto saved = offloader.hooks()->pack(test::make_bytes(machine, 1 << 20));
    auto evicts = offloader.hooks()->pack(test::make_bytes(machine, 1 << 20));
    script.backward([&] {
      script.node([&] { benchmark::DoNotOptimize(saved->unpack()); });
      saved.reset();
      evicts.reset();
    });
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PackUnpack);

}  // namespace
}  // namespace ferry::bench
