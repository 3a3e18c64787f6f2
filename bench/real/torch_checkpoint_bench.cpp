// What a checkpoint costs the host: a chain of small segments of one op, forward and backward.
//
//   plain        no checkpoints
//   checkpoint   ferry::checkpoint
//   no_rng       the same, without the random generators' state
//   reentrant    its reentrant variant
//
// A recompute of such a segment stops before its op runs (early stop), so what a row costs beyond
// `plain` is the bookkeeping alone; the reentrant one runs the op again. `per_segment_ns` is the
// chain's time by its length. compare_checkpoint.py runs this beside torch.utils.checkpoint.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cstdlib>

#include "ferry/checkpoint.h"

namespace {

constexpr std::int64_t kElements = 16;

int length() { return std::getenv("FERRY_BENCH_SMOKE") ? 10 : 1000; }

torch::Tensor op(const torch::Tensor& x) { return x.sin(); }

template <class Segment>
void chain(benchmark::State& state, Segment segment) {
  at::set_num_threads(1);
  const auto leaf = torch::randn({kElements}, torch::requires_grad());
  const auto ones = torch::ones_like(leaf);
  const int segments = length();
  for (auto _ : state) {
    auto x = leaf;
    for (int i = 0; i < segments; ++i) x = segment(x);
    x.backward(ones);
  }
  state.counters["per_segment_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * segments * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void plain(benchmark::State& state) { chain(state, op); }

void with(benchmark::State& state, const ferry::CheckpointOptions& options) {
  chain(state, [&](const torch::Tensor& x) { return ferry::checkpoint(options, op, x); });
}
void checkpoint(benchmark::State& state) { with(state, {}); }
void no_rng(benchmark::State& state) {
  with(state, ferry::CheckpointOptions().preserve_rng_state(false));
}
void reentrant(benchmark::State& state) { with(state, ferry::CheckpointOptions().reentrant(true)); }

BENCHMARK(plain);
BENCHMARK(checkpoint);
BENCHMARK(no_rng);
BENCHMARK(reentrant);

}  // namespace

BENCHMARK_MAIN();
