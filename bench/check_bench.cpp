// `ferry check` on long logs, and on lines with many arguments.
//
//   BM_Check/N        N operations of a training loop that names every buffer anew, its host
//                     waiting for each step (goal: near linear; `resident` MiB does not grow)
//   BM_CheckPinned/N  the same with a host thread that never waits: all of it must be remembered
//   BM_Arguments/N    one kernel that reads N buffers and writes N others (goal: near linear)
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <istream>
#include <streambuf>
#include <string>
#include <utility>

#include "formats/line_source.h"
#include "sim/check/log_check.h"

namespace ferry::bench {
namespace {

// Lines that are made as they are read, so that the log itself takes no memory.
class Lines final : public std::streambuf {
 public:
  explicit Lines(std::function<bool(std::string&)> next) : next_(std::move(next)) {}

 private:
  int_type underflow() override {
    line_.clear();
    if (!next_(line_)) return traits_type::eof();
    setg(line_.data(), line_.data(), line_.data() + line_.size());
    return traits_type::to_int_type(line_[0]);
  }
  std::function<bool(std::string&)> next_;
  std::string line_;
};

// Ten operations a layer, a hundred layers a step; tensors go to the host on a stream of their own.
std::string layer_line(std::int64_t i) {
  const std::string n = std::to_string(i / 10);
  switch (i % 10) {
    case 1:
      return R"({"op":"record","event":")" + n + R"(","stream":"compute"})";
    case 2:
      return R"({"op":"wait","event":")" + n + R"(","stream":"d2h"})";
    case 3:
      return R"({"op":"copy","stream":"d2h","src":"x)" + n + R"(","dst":"h)" + n +
             R"(","src_kind":"device","dst_kind":"pinned"})";
    case 9:
      if (i % 1000 == 999) return R"({"op":"device_sync"})";
      [[fallthrough]];
    default:
      return R"({"op":"kernel","stream":"compute","reads":["w"],"writes":["x)" + n +
             R"("],"name":"layer )" + n + R"(","where":"net.py:7"})";
  }
}

std::function<bool(std::string&)> training(std::int64_t operations, bool idle) {
  return [operations, idle, i = std::int64_t{0}](std::string& line) mutable {
    if (i == operations) return false;
    const std::string idler = R"({"op":"host_read","buffer":"y","thread":"idle"})";
    line = idle && i == 0 ? idler : layer_line(i);
    line += "\n";
    ++i;
    return true;
  };
}

double resident_mib() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void report(benchmark::State& state, std::int64_t items) {
  state.SetItemsProcessed(state.iterations() * items);
  state.counters["per_item_ns"] =
      benchmark::Counter(static_cast<double>(state.iterations() * items) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void check(benchmark::State& state, bool idle) {
  std::uint64_t remembered = 0;
  for (auto _ : state) {
    Lines text(training(state.range(0), idle));
    std::istream in(&text);
    LineSource lines(in, "log");
    const check::LogReport report = check::check_log(lines);
    if (report.lines != static_cast<std::uint64_t>(state.range(0))) state.SkipWithError("lines");
    remembered = report.remembered;
  }
  report(state, state.range(0));
  state.counters["resident"] = resident_mib();
  state.counters["remembered"] = static_cast<double>(remembered);
}

void BM_Check(benchmark::State& state) { check(state, false); }
void BM_CheckPinned(benchmark::State& state) { check(state, true); }

void sizes(benchmark::internal::Benchmark* benchmark) {
  const bool smoke = std::getenv("FERRY_BENCH_SMOKE") != nullptr;
  for (const std::int64_t count : {100'000, 1'000'000, 10'000'000}) {
    benchmark->Arg(smoke ? count / 1000 : count);
  }
}
BENCHMARK(BM_Check)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_CheckPinned)->Apply(sizes)->Unit(benchmark::kMillisecond);

void BM_Arguments(benchmark::State& state) {
  std::string line = R"({"op":"kernel","stream":"s","reads":[)";
  for (const char* const side : {"r", "w"}) {
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      line += (i == 0 ? "\"" : ",\"") + (side + std::to_string(i)) + "\"";
    }
    line += *side == 'r' ? R"(],"writes":[)" : "]}\n";
  }
  for (auto _ : state) {
    Lines text([&line, more = true](std::string& next) mutable {
      next = line;
      return std::exchange(more, false);
    });
    std::istream in(&text);
    LineSource lines(in, "log");
    benchmark::DoNotOptimize(check::check_log(lines));
  }
  report(state, 2 * state.range(0));
}

void arguments(benchmark::internal::Benchmark* benchmark) {
  const bool smoke = std::getenv("FERRY_BENCH_SMOKE") != nullptr;
  for (const std::int64_t count : {1'000, 10'000, 100'000}) {
    benchmark->Arg(smoke ? count / 100 : count);
  }
}
BENCHMARK(BM_Arguments)->Apply(arguments)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ferry::bench
