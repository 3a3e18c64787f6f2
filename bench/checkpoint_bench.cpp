// What a checkpoint costs the simulator: a chain of segments of one op, forward and backward.
//
//   BM_Segments/N/how    N segments; how: 0 plain calls, 1 checkpoints, 2 checkpoints, checked
//
// `per_segment_ns` is to stay flat as N grows.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <utility>

#include "bench/step.h"
#include "sim/run/simulation.h"

namespace ferry::bench {
namespace {

Program chain(std::int64_t segments, Recompute recompute) {
  Builder b;
  const TypeId type = b.type({1'000'000});
  const Slot x = b.global(GlobalKind::kInput, type);
  const Slot w = b.global(GlobalKind::kParameter, type);
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const CodeId segment = b.code(CodeKind::kSegment, "segment");
  const CodeId body = b.code(CodeKind::kBody, "Backward");
  const Slot g = b.argument(body);
  const Slot saved_x = b.saved(body);
  b.result(body, b.op(body, "grad_x", {g, saved_x}, type));
  b.result(body, b.op(body, "grad_w", {g, saved_x}, type));
  const Slot in = b.argument(segment);
  const Slot out = b.slot(segment);
  b.add(segment, MakeNode{"Backward", b.node_id(), {in, w}, {out}, {in}, body});
  b.add(segment, Op{"linear", {in, w}, {out}, {type}, {}, 0, 4'000'000, 2'000'000, 0});
  b.result(segment, out);
  Slot current = b.op(forward, "embed", {x, w}, type);
  for (std::int64_t i = 0; i < segments; ++i) {
    const Slot y = b.slot(forward);
    Call call{segment, {current}, {y}};
    call.recompute = recompute;
    b.add(forward, std::move(call));
    b.add(forward, Free{{current}});
    current = y;
  }
  b.result(forward, current);
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  return std::move(b.program);
}

void BM_Segments(benchmark::State& state) {
  const bool plain = state.range(1) == 0;
  const Program program = chain(state.range(0), plain ? Recompute::kNone : Recompute::kCheckpoint);
  const Hardware hardware = bench_hardware();
  sim::SimulationOptions options;
  options.check = state.range(1) == 2;
  for (auto _ : state) {
    const sim::Simulation run = sim::simulate(program, hardware, options);
    if (!run.hazards.empty() || !run.errors.empty()) state.SkipWithError("not safe");
    if (run.checkpoints.recomputes != (plain ? 0 : state.range(0))) {
      state.SkipWithError("another number of recomputes");
    }
  }
  state.counters["per_segment_ns"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(state.range(0)) * 1e-9,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  const bool smoke = std::getenv("FERRY_BENCH_SMOKE") != nullptr;
  for (const std::int64_t segments : {10, 1'000, 100'000, 1'000'000}) {
    if (smoke && segments > 1'000) break;
    for (const std::int64_t how : {0, 1, 2}) benchmark->Args({segments, how});
  }
}
BENCHMARK(BM_Segments)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ferry::bench
