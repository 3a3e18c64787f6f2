// What saving a tensor costs the host: a chain of small ops, forward and backward, under
//
//   no-op      hooks in C++ that keep the tensor, detached, and give it back
//   kept       Ferry's, on tensors below the least size
//   moved      Ferry's, on tensors that go to the host and come back (memory, worker threads)
//
// Each op saves one tensor. A round runs the chain with hooks and without. A busy machine only ever
// adds time, so `over_ns` is a tensor's part of the calling thread's CPU time, the least of the
// rounds with hooks less the least of those without. What worker threads do meanwhile is not in it.
// compare_hooks.py runs this beside the same chain under hooks in Python.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>

#include "ferry/hooks.h"
#include "ferry/offload.h"

namespace {

int length() { return std::getenv("FERRY_BENCH_SMOKE") ? 10 : 1000; }

constexpr std::int64_t kSmall = 16;    // floats: 64 bytes
constexpr std::int64_t kLarge = 1024;  // floats: 4 KiB
constexpr std::int64_t kLeastBytes = 1024;

double thread_cpu_ns() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

const auto kNone = [] { return 0; };

template <class MakeGuard>
double chain_ns(const torch::Tensor& leaf, MakeGuard make_guard) {
  const double begin = thread_cpu_ns();
  {
    [[maybe_unused]] const auto guard = make_guard();
    auto x = leaf;
    for (int i = 0; i < length(); ++i) x = x.sin();
    x.backward(torch::ones_like(x));
  }
  return (thread_cpu_ns() - begin) / length();
}

template <class MakeGuard>
void chain(benchmark::State& state, std::int64_t elements, MakeGuard make_guard) {
  at::set_num_threads(1);
  const auto leaf = torch::randn({elements}, torch::requires_grad());
  double least_plain = std::numeric_limits<double>::infinity();
  double least_hooked = least_plain;
  bool plain_first = false;
  for (auto _ : state) {
    plain_first = !plain_first;  // whoever comes second finds warmer caches
    if (plain_first) least_plain = std::min(least_plain, chain_ns(leaf, kNone));
    least_hooked = std::min(least_hooked, chain_ns(leaf, make_guard));
    if (!plain_first) least_plain = std::min(least_plain, chain_ns(leaf, kNone));
  }
  state.counters["over_ns"] = least_hooked - least_plain;
}

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

void small_no_op(benchmark::State& state) { chain(state, kSmall, kNoOp); }
void small_kept(benchmark::State& state) { chain(state, kSmall, offloading()); }
void large_no_op(benchmark::State& state) { chain(state, kLarge, kNoOp); }
void large_moved(benchmark::State& state) { chain(state, kLarge, offloading()); }

BENCHMARK(small_no_op);
BENCHMARK(small_kept);
BENCHMARK(large_no_op);
BENCHMARK(large_moved);

}  // namespace

BENCHMARK_MAIN();
