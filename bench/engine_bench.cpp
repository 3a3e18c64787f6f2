// The discrete-event engine against a hand-written event loop, on the stream program of a training
// step that offloads (bench/offload_step.h).
//
// In `w1` each pair of streams has a device to itself, so the engine may run ahead; in `one_device`
// all streams share the engines of one device, so every kernel and copy is an event.
//
// Figures: ns an operation (submission and the program's random draws included, and separately the
// run alone), bytes held an operation, and the ratio to the hand loop measured in the same process.
// Both must agree on makespan and digest, or the benchmark stops.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/hand_loop.h"
#include "bench/offload_step.h"
#include "sim/gpu/engine.h"

namespace ferry::bench {
namespace {

using sim::Engine;
using sim::Signal;
using sim::Time;

bool smoke() { return std::getenv("FERRY_BENCH_SMOKE") != nullptr; }

// Of processor time: ratios then hold on a machine that others use, too.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Memory stays with the process once it was used. Otherwise whichever loop asks first after a large
// block was freed pays for new pages: as a rule the hand loop, up to twice its time.
const bool kept = mallopt(M_MMAP_MAX, 0) != 0 && mallopt(M_TRIM_THRESHOLD, 1 << 30) != 0;

void must_agree(const Size& size) {
  Engine engine;
  engine.keep_digest();
  build(engine, size);
  HandLoop hand;
  build(hand, size);
  const Time makespan = engine.drain();
  if (makespan == hand.run<true>(&sim::op_digest) && engine.digest() == hand.digest() &&
      engine.submitted() == hand.ops()) {
    return;
  }
  std::fprintf(stderr, "engine_bench: the engine and the hand loop disagree\n");
  std::abort();
}

struct Seconds {
  double all = 0;
  double run = 0;
};

Seconds time_hand(const Size& size) {
  const double begin = seconds();
  HandLoop loop;
  build(loop, size);
  const double built = seconds();
  benchmark::DoNotOptimize(loop.run<false>());
  const double end = seconds();
  return {end - begin, end - built};
}

class StoredTrace final : public sim::TraceSink {
 public:
  void completed(const sim::CompletedOp& op) override {
    entries_.push_back({op.start, static_cast<std::uint32_t>(op.end - op.start),
                        static_cast<std::uint32_t>(op.op)});
  }
  void reserve(std::size_t ops) { entries_.reserve(ops); }
  std::size_t held_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  struct Entry {
    Time start;
    std::uint32_t ns;
    std::uint32_t op;
  };
  std::vector<Entry> entries_;
};

void measure(benchmark::State& state, const Size& size, bool with_trace) {
  if (size.n * size.devices * size.pairs <= 100'000) must_agree(size);
  Seconds engine_s, hand_s;
  double ops = 0, held = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const Seconds hand = time_hand(size);
    state.ResumeTiming();
    const double begin = seconds();
    auto engine = std::make_unique<Engine>();
    StoredTrace trace;
    if (with_trace) engine->trace_to(&trace);
    build(*engine, size);
    if (with_trace) trace.reserve(engine->submitted());
    const double built = seconds();
    benchmark::DoNotOptimize(engine->drain());
    const double end = seconds();
    ops += static_cast<double>(engine->submitted());
    held = static_cast<double>(engine->held_bytes() + trace.held_bytes()) /
           static_cast<double>(engine->submitted());
    engine_s.all += end - begin;
    engine_s.run += end - built;
    hand_s.all += hand.all;
    hand_s.run += hand.run;
    state.PauseTiming();
    engine.reset();
    state.ResumeTiming();
  }
  state.counters["ns/op"] = engine_s.all * 1e9 / ops;
  state.counters["ns/op_run"] = engine_s.run * 1e9 / ops;
  state.counters["hand_ns/op"] = hand_s.all * 1e9 / ops;
  state.counters["hand_ns/op_run"] = hand_s.run * 1e9 / ops;
  state.counters["ratio"] = engine_s.all / hand_s.all;
  state.counters["ratio_run"] = engine_s.run / hand_s.run;
  state.counters["ratio_to_hand_run"] = engine_s.all / hand_s.run;
  state.counters["B/op"] = held;
}

void w1(benchmark::State& state, bool with_trace) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  measure(state, {.n = n, .devices = static_cast<std::uint64_t>(state.range(1))}, with_trace);
}

void w1_sizes(benchmark::internal::Benchmark* b) {
  for (const int n : {1'000, 10'000, 100'000, 1'000'000}) {
    if (!smoke() || n <= 1'000) b->Args({n, 1});
  }
  if (!smoke()) b->Args({100'000'000 / 60, 1});  // 1e7 operations
  b->Args({smoke() ? 10 : 1'000, 256})->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(w1, plain, false)->Apply(w1_sizes);
BENCHMARK_CAPTURE(w1, trace, true)->Apply(w1_sizes);

// Some 600,000 operations, whatever the number of streams.
void one_device(benchmark::State& state) {
  const auto pairs = static_cast<std::uint64_t>(state.range(0)) / 2;
  measure(state, {.n = (smoke() ? 10'000 : 100'000) / pairs, .pairs = pairs}, false);
}
BENCHMARK(one_device)->Arg(4)->Arg(16)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

// A planner's "what if": one small simulation, with building and dropping the engine.
void what_if_92_operations(benchmark::State& state) {
  for (auto _ : state) {
    Engine engine;
    build(engine, Size{.n = 16});
    benchmark::DoNotOptimize(engine.drain());
    if (engine.submitted() != 92) std::abort();
  }
}
BENCHMARK(what_if_92_operations);

// A host that submits an operation at a time and advances now and then: memory must not grow.
void incremental(benchmark::State& state) {
  Engine engine;
  const sim::DeviceId device = engine.add_device({1000, 1000, 1000, 1000, 0});
  const StreamId compute = engine.add_stream(device);
  const StreamId copies = engine.add_stream(device);
  Time host = 0;
  std::uint64_t i = 0;
  for (auto _ : state) {
    engine.kernel(compute, 1'000, host);
    const Signal produced = engine.record(compute, host);
    engine.wait(copies, produced, host);
    engine.release(produced);
    engine.copy(copies, CopyKind::kDeviceToHost, 500, host);
    host += 1'000;
    if (++i % 64 == 0) engine.advance(host);
  }
  state.counters["time/op"] =
      benchmark::Counter(static_cast<double>(engine.submitted()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["held_B"] = static_cast<double>(engine.held_bytes());
}
BENCHMARK(incremental);

}  // namespace
}  // namespace ferry::bench
