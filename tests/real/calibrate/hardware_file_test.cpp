// What was measured as a hardware file: the figures that follow, and that it is read.
#include "real/calibrate/hardware_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "real/calibrate/report.h"
#include "scenarios/matrix_time.h"

namespace ferry::real::calibrate {
namespace {

Timing just(std::int64_t ns) { return {.ns = ns, .least_ns = ns, .rounds = 3}; }

// Copies of 1 KiB take 1000 ns, and a mebibyte more 100 us down and 200 us up; half as fast beside
// each other.
Measured made_up() {
  Measured measured;
  measured.machine = {.name = "Card \"X\"",
                      .driver = "driver 1",
                      .memory_bytes = 1 << 30,
                      .host_memory_bytes = 1 << 20,
                      .host_threads = 1};
  measured.issue = just(5000);
  measured.kernel = just(2000);
  measured.triad = just(1000);
  measured.triad_bytes = 3'000'000;
  measured.matmuls = {{DType::kF32, 100, just(20'000)},
                      {DType::kBF16, 100, just(10'000)},
                      {DType::kF64, 100, just(40'000)}};
  measured.host = {
      .triad = just(2000), .triad_bytes = 100'000, .matmul = {DType::kF32, 10, just(8)}};
  measured.allocations = {{kFreshHostBlock, 1 << 10, just(9'000)},
                          {"host block, cached", 1 << 10, just(100)},
                          {kFreshHostBlock, 1 << 20, just(500'000)},
                          {"device block, fresh", 1 << 20, just(50)}};
  for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
    const std::int64_t slow = lane == Lane::kDeviceToHost ? 1 : 2;
    measured.copies.push_back({lane, HostMemory::kPinned, false, 1 << 10, just(900 + 50 * slow)});
    measured.copies.push_back(
        {lane, HostMemory::kPinned, false, 1 << 20, just(1000 + 100'000 * slow)});
    measured.copies.push_back(
        {lane, HostMemory::kPinned, true, 1 << 20, just(1000 + 200'000 * slow)});
    measured.copies.push_back({lane, HostMemory::kPageable, false, 1 << 20, just(9'000'000)});
  }
  return measured;
}

const About kGpu{.device = "cuda", .host_tier = "pinned memory", .date = "2026-01-02"};

TEST(HardwareFileTest, TheFiguresAreThoseMeasured) {
  const Hardware hardware = to_hardware(made_up(), kGpu);
  EXPECT_EQ(hardware.link.latency_ns, 1000);
  EXPECT_EQ(hardware.link.d2h_alone, 10'485);  // a mebibyte in 100 us
  EXPECT_EQ(hardware.link.h2d_alone, 5'242);
  EXPECT_EQ(hardware.link.d2h_both, 5'242);
  EXPECT_EQ(hardware.link.h2d_both, 2'621);
  EXPECT_EQ(hardware.memory_bytes_per_us, 3'000'000);
  EXPECT_EQ(hardware.flops_per_us_of(DType::kF32), 100'000);
  EXPECT_EQ(hardware.flops_per_us_of(DType::kBF16), 200'000);
  EXPECT_EQ(hardware.flops_per_us_of(DType::kF64), 50'000);
  EXPECT_EQ(hardware.flops_per_us_of(DType::kF8), 200'000);  // not measured: as bf16
  EXPECT_EQ(hardware.host.memory_bytes_per_us, 50'000);
  EXPECT_EQ(hardware.host.flops_per_us, 250'000);  // 2 x 10^3 of them in 8 ns
  EXPECT_EQ(hardware.kernel_min_ns, 2000);
  EXPECT_EQ(hardware.launch_ns, 5000);
  EXPECT_EQ(hardware.link.pageable_d2h, 116);  // a mebibyte in 9 ms
  EXPECT_EQ(hardware.link.pageable_h2d, 116);
  EXPECT_EQ(hardware.pin_bytes_per_us, 2'097);  // a fresh mebibyte in 500 us
}

// Then a plan takes whole tiles and waves, and the peak is told so that the product that was
// measured takes as long as it did.
TEST(HardwareFileTest, OfAGpuThePeakIsThatOfFullWaves) {
  Measured measured = made_up();
  measured.machine.multiprocessors = 4;
  measured.machine.compute_capability = 89;
  const Hardware hardware = to_hardware(measured, kGpu);
  for (const MatmulTime& matmul : measured.matmuls) {
    EXPECT_NEAR(static_cast<double>(product_ns({1, 100, 100, 100}, matmul.dtype, hardware)),
                static_cast<double>(matmul.time.ns), 2);
  }
  EXPECT_GT(hardware.flops_per_us_of(DType::kBF16), 200'000);
  EXPECT_EQ(hardware.flops_per_us_of(DType::kF8), hardware.flops_per_us_of(DType::kBF16));
  const Hardware read = parse_hardware(to_toml(measured, kGpu), "mine.toml");
  EXPECT_EQ(read.multiprocessors, 4);
  EXPECT_EQ(read.compute_capability, 89);
}

TEST(HardwareFileTest, WhatWasNotMeasuredIsNotTold) {
  Measured measured = made_up();
  std::erase_if(measured.copies,
                [](const CopyTime& copy) { return copy.memory == HostMemory::kPageable; });
  About cpu = kGpu;
  cpu.device = "cpu";  // whose host tier is not pinned
  const std::string text = to_toml(measured, cpu);
  for (const char* key : {"pageable", "pin_rate", "multiprocessors", "compute_capability"}) {
    EXPECT_EQ(text.find(key), std::string::npos) << key;
  }
}

// The thread that issues on a CPU is the one that computes.
TEST(HardwareFileTest, ACpuLaunchesForNothing) {
  About cpu = kGpu;
  cpu.device = "cpu";
  EXPECT_EQ(to_hardware(made_up(), cpu).launch_ns, 0);
}

TEST(HardwareFileTest, NothingIsFasterBesideAnotherCopyThanAlone) {
  Measured measured = made_up();
  for (CopyTime& copy : measured.copies) {
    if (copy.both) copy.time = just(2000);
  }
  const Hardware hardware = to_hardware(measured, kGpu);
  EXPECT_EQ(hardware.link.d2h_both, hardware.link.d2h_alone);
  EXPECT_EQ(hardware.link.h2d_both, hardware.link.h2d_alone);
}

TEST(HardwareFileTest, WhereTheLanesNeverMetARateIsTheLonelyOne) {
  Measured measured = made_up();
  std::erase_if(measured.copies, [](const CopyTime& copy) { return copy.both; });
  EXPECT_EQ(to_hardware(measured, kGpu).link.d2h_both, 10'485);
}

TEST(HardwareFileTest, TheFileIsReadAsItWasMeant) {
  for (const bool fp8 : {false, true}) {
    Measured measured = made_up();
    if (fp8) measured.matmuls.push_back({DType::kF8, 100, just(5'000)});
    const Hardware meant = to_hardware(measured, kGpu);
    const std::string text = to_toml(measured, kGpu);
    const Hardware read = parse_hardware(text, "mine.toml");
    EXPECT_EQ(read.description, meant.description);
    EXPECT_EQ(read.description,
              "Card \"X\", driver 1, 1 thread, host tier: pinned memory, measured 2026-01-02");
    EXPECT_EQ(read.flops_per_us, meant.flops_per_us);
    EXPECT_EQ(read.memory_bytes, 1 << 30);
    EXPECT_EQ(read.host_memory_bytes, 1 << 20);
    EXPECT_EQ(read.memory_bytes_per_us, meant.memory_bytes_per_us);
    EXPECT_EQ(read.matmul_percent, 100);
    EXPECT_EQ(read.memory_percent, 100);
    EXPECT_EQ(read.link.h2d_both, meant.link.h2d_both);
    EXPECT_EQ(read.link.latency_ns, meant.link.latency_ns);
    EXPECT_EQ(read.link.pageable_d2h, meant.link.pageable_d2h);
    EXPECT_EQ(read.pin_bytes_per_us, meant.pin_bytes_per_us);
    EXPECT_EQ(read.launch_ns, meant.launch_ns);
    // Every figure says how it was measured.
    const auto lines = std::count(text.begin(), text.end(), '=');
    EXPECT_EQ(std::count(text.begin(), text.end(), '#'), lines - 2) << text;  // description; a = b
  }
}

TEST(TimingTest, IsTheMedianAndTheLeast) {
  const Timing timing = timing_of({5, 1, 9});
  EXPECT_EQ(timing.ns, 5);
  EXPECT_EQ(timing.least_ns, 1);
  EXPECT_EQ(timing.rounds, 3);
}

}  // namespace
}  // namespace ferry::real::calibrate
