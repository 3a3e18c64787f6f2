// A trace file as a viewer reads it: by the rules of the Trace Event Format and of Perfetto's
// importer of it (src/trace_processor/importers/json), written down again here.
//
// Events are sorted by time, those of one time as they stand in the file. A thread's slices are
// over at their ends, and lie in each other or apart. A flow's end belongs to the slice that is
// open on its thread at its time.
#include "sim/gpu/step_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

using Json = nlohmann::json;
using Track = std::pair<std::int64_t, std::int64_t>;  // process and thread

std::int64_t ns(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

struct Viewer {
  std::map<Track, std::vector<const Json*>> open;  // slices, the innermost last
  std::set<Track> named;
  std::map<std::int64_t, const Json*> begun;  // flows, by id: the slice that each begins in
  std::vector<std::pair<const Json*, const Json*>> flows;

  static Track track(const Json& event) { return {event.at("pid"), event.at("tid")}; }
  static std::int64_t end(const Json& slice) { return ns(slice.at("ts")) + ns(slice.at("dur")); }

  const Json* slice_at(const Json& event) {
    std::vector<const Json*>& stack = open[track(event)];
    while (!stack.empty() && end(*stack.back()) <= ns(event.at("ts"))) stack.pop_back();
    return stack.empty() ? nullptr : stack.back();
  }
  void meet(const Json& event) {
    const std::string phase = event.at("ph");
    if (phase == "M") {
      if (event.at("name") == "thread_name") named.insert(track(event));
    } else if (phase == "X") {
      const Json* around = slice_at(event);
      if (around) {
        EXPECT_LE(end(event), end(*around)) << event << " crosses " << *around;
      }
      open[track(event)].push_back(&event);
      EXPECT_TRUE(named.contains(track(event))) << event;
    } else if (phase == "s") {
      EXPECT_TRUE(begun.emplace(event.at("id"), slice_at(event)).second) << event;
    } else if (phase == "f") {
      EXPECT_EQ(event.at("bp"), "e");
      ASSERT_TRUE(begun.contains(event.at("id"))) << event;
      flows.emplace_back(begun.at(event.at("id")), slice_at(event));
    } else {
      ASSERT_EQ(phase, "C");
      for (const auto& [name, value] : event.at("args").items()) EXPECT_GE(value, 0) << name;
    }
  }
};

std::vector<Json> sorted_events(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Json> events = Json::parse(in).at("traceEvents");
  std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
    return a.value("ts", -1.0) < b.value("ts", -1.0);
  });
  return events;
}

TEST(StepTraceViewerTest, SlicesNestAndFlowsGoFromACopyToTheOneThatBringsItsBytesBack) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("viewer_" + std::to_string(::getpid()));
  StepTrace trace(path);
  SimulationOptions options;
  options.offload.emplace();
  options.offload->min_bytes = 0;
  options.offload->window_tensors = 4;  // copies follow each other without a gap
  options.offload->prefetch_bytes = 1 << 20;
  options.training.steps = 2;
  options.trace = &trace;
  const Simulation run = simulate(test::chain({.layers = 12}), test::tiny_hardware(), options);
  trace.commit();
  const std::vector<Json> events = sorted_events(path);
  std::filesystem::remove(path);

  Viewer viewer;
  for (const Json& event : events) viewer.meet(event);
  ASSERT_EQ(viewer.flows.size(), 2 * static_cast<std::size_t>(run.statistics.reloaded_count));
  ASSERT_GT(viewer.flows.size(), 4u);
  std::set<const Json*> from, to;
  for (const auto& [offload, reload] : viewer.flows) {
    ASSERT_TRUE(offload && reload);
    EXPECT_EQ(offload->at("name"), "offload");
    EXPECT_EQ(reload->at("name"), "reload");
    EXPECT_EQ(offload->at("args").at("bytes"), reload->at("args").at("bytes"));
    EXPECT_LE(Viewer::end(*offload), ns(reload->at("ts")));
    EXPECT_TRUE(from.insert(offload).second) << "two flows from one copy";
    EXPECT_TRUE(to.insert(reload).second) << "two flows to one copy";
  }
}

}  // namespace
}  // namespace ferry::sim
