// The discrete-event engine against a hand-written event loop, on W1: the stream program of a
// training step that offloads (2N kernels, N copies, 6N - 4 operations; see W1 below).
//
// Figures: ns an operation (submission and the program's random draws included, and separately the
// run alone), bytes held an operation, and the ratio to the hand loop measured in the same process.
// Both must agree on makespan and digest, or the benchmark stops.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/hand_loop.h"
#include "sim/gpu/engine.h"

namespace ferry::bench {
namespace {

using sim::Engine;
using sim::Signal;
using sim::Time;

bool smoke() { return std::getenv("FERRY_BENCH_SMOKE") != nullptr; }

// Of processor time: ratios then hold on a machine that others use, too.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// splitmix64's output function (Sebastiano Vigna) of seed and index.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
std::int64_t kernel_ns(std::uint64_t seed, std::uint64_t i) {
  return 10'000 + static_cast<std::int64_t>(mix(seed, i) % 490'001);
}
std::int64_t copy_ns(std::uint64_t seed, std::uint64_t i) {
  return 50'000 + static_cast<std::int64_t>(mix(seed ^ 0x5bd1e995, i) % 900'001);
}

// Builds into the engine: 1 GB/s, so that a copy of b bytes takes b ns.
struct EngineTarget {
  Engine& engine;
  using Stream = StreamId;
  using Mark = Signal;
  StreamId stream(sim::DeviceId device) { return engine.add_stream(device); }
  void kernel(StreamId s, Time ns) { engine.kernel(s, ns, 0); }
  void down(StreamId s, Time ns) { engine.copy(s, CopyKind::kDeviceToHost, ns, 0); }
  void up(StreamId s, Time ns) { engine.copy(s, CopyKind::kHostToDevice, ns, 0); }
  Mark record(StreamId s) { return engine.record(s, 0); }
  void wait(StreamId s, Mark mark) { engine.wait(s, mark, 0); }
};

struct HandTarget {
  HandLoop& loop;
  using Stream = std::uint32_t;
  using Mark = std::uint32_t;
  void kernel(Stream s, Time ns) { loop.activity(s, HandKind::kCompute, ns); }
  void down(Stream s, Time ns) { loop.activity(s, HandKind::kDown, ns); }
  void up(Stream s, Time ns) { loop.activity(s, HandKind::kUp, ns); }
  Mark record(Stream s) { return loop.record(s); }
  void wait(Stream s, Mark mark) { loop.wait(s, mark); }
};

// W1. Forward: kernels K_1..K_N, a record F_j after K_2j, and on the copy stream D2H_j after F_j.
// Backward: K_(N+2j) waits for H_j, the end of the j-th H2D, and is followed by the record B_j; the
// j-th H2D waits for its slot, the end of K_(N+2j-8) = B_(j-4). A host submits both streams in
// turn.
template <class Target>
void build_w1(Target target, typename Target::Stream compute, typename Target::Stream copies,
              std::uint64_t n, std::uint64_t seed) {
  const std::uint64_t half = n / 2;
  for (std::uint64_t j = 1; j <= half; ++j) {
    target.kernel(compute, kernel_ns(seed, 2 * j - 1));
    target.kernel(compute, kernel_ns(seed, 2 * j));
    const auto forward = target.record(compute);
    target.wait(copies, forward);
    target.down(copies, copy_ns(seed, j));
  }
  std::vector<typename Target::Mark> slots(4);  // the last four B
  for (std::uint64_t j = 1; j <= half; ++j) {
    if (j > 4) target.wait(copies, slots[j % 4]);
    target.up(copies, copy_ns(seed, half + j));
    const auto here = target.record(copies);
    target.kernel(compute, kernel_ns(seed, n + 2 * j - 1));
    target.wait(compute, here);
    target.kernel(compute, kernel_ns(seed, n + 2 * j));
    slots[j % 4] = target.record(compute);
  }
}

constexpr sim::LinkRates kUnitRates{1000, 1000, 1000, 1000, 0};

void build(Engine& engine, std::uint64_t n, std::uint64_t devices) {
  for (std::uint64_t d = 0; d < devices; ++d) {
    const sim::DeviceId device = engine.add_device(kUnitRates);
    const StreamId compute = engine.add_stream(device);
    build_w1(EngineTarget{engine}, compute, engine.add_stream(device), n, d);
  }
}

void build(HandLoop& loop, std::uint64_t n, std::uint64_t devices) {
  for (std::uint64_t d = 0; d < devices; ++d) {
    const std::uint32_t device = loop.add_device();
    const std::uint32_t compute = loop.add_stream(device);
    build_w1(HandTarget{loop}, compute, loop.add_stream(device), n, d);
  }
}

void must_agree(std::uint64_t n, std::uint64_t devices) {
  Engine engine;
  build(engine, n, devices);
  HandLoop hand;
  build(hand, n, devices);
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

Seconds time_hand(std::uint64_t n, std::uint64_t devices) {
  const double begin = seconds();
  HandLoop loop;
  build(loop, n, devices);
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

void w1(benchmark::State& state, bool with_trace) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const auto devices = static_cast<std::uint64_t>(state.range(1));
  if (n * devices <= 100'000) must_agree(n, devices);
  Seconds engine_s, hand_s;
  double ops = 0, held = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const Seconds hand = time_hand(n, devices);
    state.ResumeTiming();
    const double begin = seconds();
    auto engine = std::make_unique<Engine>();
    StoredTrace trace;
    if (with_trace) engine->trace_to(&trace);
    build(*engine, n, devices);
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

void w1_sizes(benchmark::internal::Benchmark* b) {
  for (const int n : {1'000, 10'000, 100'000, 1'000'000}) {
    if (!smoke() || n <= 1'000) b->Args({n, 1});
  }
  if (!smoke()) b->Args({100'000'000 / 60, 1});  // 1e7 operations
  b->Args({smoke() ? 10 : 1'000, 256})->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(w1, plain, false)->Apply(w1_sizes);
BENCHMARK_CAPTURE(w1, trace, true)->Apply(w1_sizes);

// A planner's "what if": one small simulation, with building and dropping the engine.
void what_if_92_operations(benchmark::State& state) {
  for (auto _ : state) {
    Engine engine;
    build(engine, 16, 1);
    benchmark::DoNotOptimize(engine.drain());
    if (engine.submitted() != 92) std::abort();
  }
}
BENCHMARK(what_if_92_operations);

// A host that submits an operation at a time and advances now and then: memory must not grow.
void incremental(benchmark::State& state) {
  Engine engine;
  const sim::DeviceId device = engine.add_device(kUnitRates);
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
