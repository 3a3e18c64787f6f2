// A step's trace file says of each stream what it did and when, as the run's own figures have it.
#include "sim/gpu/step_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class StepTraceTest : public ::testing::Test {
 protected:
  ~StepTraceTest() override { fs::remove(path_); }

  std::vector<Json> events(const std::string& phase) const {
    std::ifstream in(path_);
    const Json trace = Json::parse(in);
    std::vector<Json> found;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") == phase) found.push_back(event);
    }
    return found;
  }
  static std::int64_t ns(const Json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  }

  const fs::path path_ =
      fs::path(::testing::TempDir()) / ("ferry_trace_" + std::to_string(::getpid()) + ".json");
};

TEST_F(StepTraceTest, AStepsTraceHasItsTimesItsCopiesAndItsMemory) {
  StepTrace trace(path_);
  SimulationOptions options;
  options.offload.emplace();
  options.offload->window_tensors = 1;
  options.offload->prefetch_bytes = 4096;
  options.trace = &trace;
  const Simulation run = simulate(test::chain({.layers = 6}), test::tiny_hardware(), options);
  EXPECT_FALSE(fs::exists(path_));
  trace.commit();

  std::map<std::string, std::int64_t> busy_ns;
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> streams;
  std::int64_t end_ns = 0;
  std::int64_t out_bytes = 0;
  for (const Json& span : events("X")) {
    const std::int64_t begin = ns(span.at("ts"));
    const std::int64_t lasts = ns(span.at("dur"));
    busy_ns[span.at("cat")] += lasts;
    end_ns = std::max(end_ns, begin + lasts);
    streams[{span.at("pid"), span.at("tid")}].emplace_back(begin, begin + lasts);
    if (span.at("name") == "offload") out_bytes += span.at("args").at("bytes").get<std::int64_t>();
  }
  EXPECT_EQ(end_ns, run.step_ns);
  EXPECT_EQ(busy_ns["kernel"], run.compute_ns);
  EXPECT_EQ(busy_ns["gpu_memcpy"], run.d2h_ns + run.h2d_ns);
  EXPECT_GT(out_bytes, 0);
  EXPECT_EQ(out_bytes, run.d2h_bytes);
  EXPECT_EQ(streams.size(), 3u);
  for (auto& [stream, spans] : streams) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second);
  }
  std::int64_t peak = 0;
  for (const Json& counter : events("C")) {
    peak = std::max(peak, counter.at("args").at("bytes").get<std::int64_t>());
  }
  EXPECT_EQ(peak, run.device_peak_bytes);
  EXPECT_GT(run.statistics.reloaded_count, 0);
  EXPECT_EQ(events("s").size(), static_cast<std::size_t>(run.statistics.reloaded_count));
  EXPECT_EQ(events("f").size(), events("s").size());
}

TEST_F(StepTraceTest, WorkMayEndBeforeOrAfterItIsSaidWhatItIs) {
  {
    StepTrace trace(path_);
    trace.add_stream(StreamId{1}, 0, "side \"1\"\n");
    trace.given(StreamId{1}, "first");
    trace.given(StreamId{1}, "second", 5, 77);
    trace.completed({0, StreamId{1}, OpKind::kKernel, 1000, 2001});
    trace.completed({1, StreamId{1}, OpKind::kRecord, 2001, 2001});
    trace.completed({2, StreamId{1}, OpKind::kDeviceToHost, 2001, 3000});
    trace.completed({3, StreamId{1}, OpKind::kHostToDevice, 4000, 5000});
    trace.given(StreamId{1}, "back", 5, 77);
    trace.allocated(1, 10, 100);
    trace.allocated(0, 11, 50);
    trace.allocated(1, 12, -30);
    trace.commit();
  }
  const std::vector<Json> spans = events("X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].at("name"), "first");
  EXPECT_EQ(spans[0].at("ts"), 1.0);
  EXPECT_EQ(spans[0].at("dur"), 1.001);
  EXPECT_EQ(spans[1].at("cat"), "gpu_memcpy");
  EXPECT_EQ(spans[1].at("args").at("bytes"), 5);
  EXPECT_EQ(spans[2].at("name"), "back");
  EXPECT_EQ(events("s")[0].at("ts"), 2.999);
  EXPECT_EQ(events("f")[0].at("ts"), 4.0);
  EXPECT_EQ(events("M")[0].at("args").at("name"), "side \"1\"\n");
  EXPECT_EQ(events("C")[2].at("args").at("bytes"), 70);
}

}  // namespace
}  // namespace ferry::sim
