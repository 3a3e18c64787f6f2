// What it costs the host to record an operator call and to run it again: a chain of small ops that
// is recomputed as one.
//
//   plain        nothing is recomputed
//   again        the ops alone, without autograd: what running them again takes by itself
//   checkpoint   ferry::checkpoint of the chain
//   selective    the same, with a list of ops to keep of which none comes
//   replay       ferry::replay of the chain
//   span         a plan with the chain as a span of operators, under an OffloadGuard
//
// `per_op_ns` is a row's time by the chain's length; compare_checkpoint.py subtracts the first two,
// and runs this beside PyTorch's selective checkpoint.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cstdlib>
#include <functional>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "ferry/replay.h"
#include "ferry/selective.h"
#include "formats/layout.h"
#include "formats/plan.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kElements = 16;

int length() { return std::getenv("FERRY_BENCH_SMOKE") ? 10 : 1000; }

Tensor chain(Tensor x) {
  for (int i = 0; i < length(); ++i) x = x.sin();
  return x;
}

void time(benchmark::State& state, const std::function<void(const Tensor& leaf)>& step) {
  at::set_num_threads(1);
  const auto leaf = torch::randn({kElements}, torch::requires_grad());
  for (auto _ : state) step(leaf);
  state.counters["per_op_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * length() * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

template <class Recomputed>
void step(benchmark::State& state, Recomputed recomputed) {
  const auto ones = torch::ones({kElements});
  time(state, [&](const Tensor& leaf) { recomputed(leaf).backward(ones); });
}

void plain(benchmark::State& state) { step(state, chain); }
void again(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  time(state, chain);
}
void checkpoint(benchmark::State& state) {
  step(state, [](const Tensor& leaf) { return ferry::checkpoint(chain, leaf); });
}
void selective(benchmark::State& state) {
  const auto keep = ferry::CheckpointOptions().context_fn(ferry::selective({"aten::mm"}));
  step(state, [&](const Tensor& leaf) { return ferry::checkpoint(keep, chain, leaf); });
}
void replay(benchmark::State& state) {
  step(state, [](const Tensor& leaf) { return ferry::replay(chain, leaf); });
}
void span(benchmark::State& state) {
  ferry::Plan plan;
  plan.spans = {{.first = 0, .last = static_cast<std::uint64_t>(length() - 1)}};
  // The leaf, which the first op saves and the replay begins from.
  const ferry::Layout layout = ferry::contiguous_layout(ferry::DType::kF32, {kElements});
  for (const std::uint64_t pack : {0, 1}) plan.entries.push_back({pack, "SinBackward0", layout, 0});
  const ferry::Offload offload(plan, {});
  const auto ones = torch::ones({kElements});
  time(state, [&](const Tensor& leaf) {
    Tensor y;
    {
      const ferry::OffloadGuard guard(offload);
      y = chain(leaf);
    }
    y.backward(ones);
  });
}

BENCHMARK(plain);
BENCHMARK(again);
BENCHMARK(checkpoint);
BENCHMARK(selective);
BENCHMARK(replay);
BENCHMARK(span);

}  // namespace

BENCHMARK_MAIN();
