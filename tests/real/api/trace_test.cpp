// The counter of a trace: what the device's allocator has given out after each op.
#include "real/api/trace.h"

#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "real/cpu/counting_allocator.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kElements = 1 << 16;

// The values of the counter, of two ops that each make a tensor and one that makes none.
std::vector<std::int64_t> counted() {
  const auto trace = std::make_shared<Trace>();
  {
    const OpTraceScope scope(trace);
    const at::Tensor first = at::ones({kElements});
    at::Tensor second = at::add(first, 1);
    at::relu_(second);
  }
  const auto path = std::filesystem::temp_directory_path() / "ferry_trace_test.json";
  trace->write(path);
  const auto written = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::vector<std::int64_t> bytes;
  for (const auto& event : written["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "allocated");
    bytes.push_back(event["args"]["bytes"]);
  }
  return bytes;
}

TEST(TraceTest, CountsWhatTheAllocatorHasGivenOut) {
  CountingAllocator& counting = CountingAllocator::instance();
  c10::Allocator* const previous = counting.install();
  const std::int64_t before = counting.live_bytes();
  const std::vector<std::int64_t> bytes = counted();
  CountingAllocator::restore(previous);
  ASSERT_GE(bytes.size(), 2U);
  EXPECT_EQ(std::adjacent_find(bytes.begin(), bytes.end()), bytes.end()) << "changes alone";
  EXPECT_GE(bytes.front(), before);
  EXPECT_GE(bytes.back() - before, 2 * 4 * kElements);
  EXPECT_LT(bytes.back() - before, 3 * 4 * kElements);
}

TEST(TraceTest, HasNoCounterWhereNobodyCounts) { EXPECT_TRUE(counted().empty()); }

}  // namespace
}  // namespace ferry::real
