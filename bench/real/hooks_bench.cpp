// What saving a tensor costs the host: a chain of small ops, forward and backward, under
//
//   none       no hooks
//   no-op      hooks in C++ that keep the tensor, detached, and give it back
//   kept       Ferry's, on tensors below the least size
//   moved      Ferry's, on tensors that go to the host and come back (memory, worker threads)
//
// Each op saves one tensor. `per_save_ns` is the chain's time by its length; what the hooks cost is
// the difference to `none`. compare_hooks.py runs this beside the same chain under hooks in Python.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cstdlib>
#include <memory>

#include "ferry/hooks.h"
#include "ferry/offload.h"

namespace {

int length() { return std::getenv("FERRY_BENCH_SMOKE") ? 10 : 1000; }

constexpr std::int64_t kSmall = 16;    // floats: 64 bytes
constexpr std::int64_t kLarge = 1024;  // floats: 4 KiB
constexpr std::int64_t kLeastBytes = 1024;

template <class MakeGuard>
void chain(benchmark::State& state, std::int64_t elements, MakeGuard make_guard) {
  at::set_num_threads(1);
  const auto leaf = torch::randn({elements}, torch::requires_grad());
  const int ops = length();
  for (auto _ : state) {
    [[maybe_unused]] const auto guard = make_guard();
    auto x = leaf;
    for (int i = 0; i < ops; ++i) x = x.sin();
    x.backward(torch::ones_like(x));
  }
  leaf.mutable_grad().reset();
  state.counters["per_save_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * ops * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const auto kNone = [] { return 0; };
const auto kNoOp = [] {
  return std::make_unique<ferry::SavedTensorsHooks>([](const torch::Tensor& x) { return x; },
                                                    [](const torch::Tensor& x) { return x; });
};

struct Offloading {
  ferry::Offload offload;
  std::unique_ptr<ferry::OffloadGuard> operator()() const {
    return std::make_unique<ferry::OffloadGuard>(offload);
  }
};

Offloading offloading() {
  return {ferry::Offload(
      ferry::OffloadOptions().min_bytes(kLeastBytes).window(256 << 10).prefetch(256 << 10))};
}

void small_none(benchmark::State& state) { chain(state, kSmall, kNone); }
void small_no_op(benchmark::State& state) { chain(state, kSmall, kNoOp); }
void small_kept(benchmark::State& state) { chain(state, kSmall, offloading()); }
void large_none(benchmark::State& state) { chain(state, kLarge, kNone); }
void large_no_op(benchmark::State& state) { chain(state, kLarge, kNoOp); }
void large_moved(benchmark::State& state) { chain(state, kLarge, offloading()); }

BENCHMARK(small_none);
BENCHMARK(small_no_op);
BENCHMARK(small_kept);
BENCHMARK(large_none);
BENCHMARK(large_no_op);
BENCHMARK(large_moved);

}  // namespace

BENCHMARK_MAIN();
