// What must not cost more where there is more of it: saving a tensor
//
//   exempt_none, exempt_many    beside no exempt tensors, and beside 30,000
//   sizes_one, sizes_many       of one size each time, and of a size of its own each time
//   beside_own, beside_shared   while another thread waits for its copies: with an Offload of its
//                               own, and with the same one
//
// `per_save_ns` is the time of a step by its saves. And in memory:
//
//   resident_keep, resident_disk  after a forward that saves 512 tensors of 1 MiB, which stay, or
//                                 go to a disk: `resident_mib` of the process
//
// bench/check.py holds the ratios of each pair to recorded ones.
#include <benchmark/benchmark.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "ferry/offload.h"

namespace {

bool smoke() { return std::getenv("FERRY_BENCH_SMOKE") != nullptr; }

ferry::OffloadOptions small_window() {
  return ferry::OffloadOptions().min_bytes(1024).window(64 << 10).prefetch(64 << 10);
}

void report(benchmark::State& state, std::int64_t saves) {
  state.counters["per_save_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations() * saves) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// A chain of ops, each of which saves a tensor of its own of `elements(i)` floats.
template <class Elements>
void step(const ferry::Offload& offload, int saves, Elements elements) {
  const ferry::OffloadGuard guard(offload);
  auto sum = torch::zeros({}, torch::requires_grad());
  for (int i = 0; i < saves; ++i) {
    sum = sum + torch::full({elements(i)}, 0.5F).mul(sum).sin().sum();
  }
  sum.backward();
}

void exempt(benchmark::State& state, int exempted) {
  at::set_num_threads(1);
  const int saves = smoke() ? 10 : 200;
  const ferry::Offload offload(small_window());
  std::vector<torch::Tensor> parameters(
      static_cast<std::size_t>(smoke() ? exempted / 100 : exempted));
  for (torch::Tensor& parameter : parameters) {
    parameter = torch::empty({1});
    ferry::Offload(offload).exempt(parameter);
  }
  for (auto _ : state) step(offload, saves, [](int) { return 1024; });
  report(state, 2 * saves);
}
void exempt_none(benchmark::State& state) { exempt(state, 0); }
void exempt_many(benchmark::State& state) { exempt(state, 30'000); }

// As many bytes move either way: 64 sizes, of 1 to 64 pages, or the middle one.
void sizes(benchmark::State& state, bool many) {
  at::set_num_threads(1);
  const int saves = smoke() ? 10 : 4000;
  const ferry::Offload offload(small_window());
  for (auto _ : state) {
    step(offload, saves, [&](int i) { return (many ? i * 37 % 64 + 1 : 32) * 1024; });
  }
  report(state, 2 * saves);
}
void sizes_one(benchmark::State& state) { sizes(state, false); }
void sizes_many(benchmark::State& state) { sizes(state, true); }

void beside(benchmark::State& state, bool shared) {
  at::set_num_threads(1);
  const int saves = smoke() ? 10 : 200;
  const ferry::Offload offload(small_window());
  const ferry::Offload other = shared ? offload : ferry::Offload(small_window());
  std::atomic<bool> stop = false;
  std::thread busy([&] {  // copies of 4 MiB, one waited for after the other
    at::set_num_threads(1);
    while (!stop) step(other, 8, [](int) { return 1 << 20; });
  });
  for (auto _ : state) step(offload, saves, [](int) { return 16; });  // nothing of ours moves
  stop = true;
  busy.join();
  report(state, 2 * saves);
}
void beside_own(benchmark::State& state) { beside(state, false); }
void beside_shared(benchmark::State& state) { beside(state, true); }

double resident_mib() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void resident(benchmark::State& state, bool moves) {
  at::set_num_threads(1);
  // Made for both: it fixes malloc's thresholds for the process.
  static const ferry::Offload offload(small_window().disk(std::filesystem::temp_directory_path()));
  const int saves = smoke() ? 4 : 512;
  double after = 0;
  for (auto _ : state) {
    std::optional<ferry::OffloadGuard> guard;
    if (moves) guard.emplace(offload);
    auto x = torch::zeros({1 << 18}, torch::requires_grad());
    for (int i = 0; i < saves; ++i) x = x.sin();
    after = std::max(after, resident_mib());
    x.sum().backward();
  }
  state.counters["resident_mib"] = after;
}
void resident_keep(benchmark::State& state) { resident(state, false); }
void resident_disk(benchmark::State& state) { resident(state, true); }

BENCHMARK(exempt_none);
BENCHMARK(exempt_many);
BENCHMARK(sizes_one);
BENCHMARK(sizes_many);
BENCHMARK(beside_own)->UseRealTime();
BENCHMARK(beside_shared)->UseRealTime();
BENCHMARK(resident_keep);
BENCHMARK(resident_disk);

}  // namespace

BENCHMARK_MAIN();
