// What a simulated step writes for `ferry check` is clean, and is not with a step of the core's
// left out.
#include "sim/gpu/stream_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/line_source.h"
#include "sim/check/log_check.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

namespace fs = std::filesystem;

class StreamLogTest : public ::testing::Test {
 protected:
  ~StreamLogTest() override { fs::remove(log_); }

  check::LogReport check(SimulationOptions options) {
    StreamLogFile file(log_);
    StreamLog log(file);
    options.check = false;
    options.consumers = {&log};
    simulate(test::chain({.layers = 6}), test::tiny_hardware(), options);
    file.commit();
    std::ifstream in(log_);
    LineSource lines(in, "log");
    return check::check_log(lines);
  }

  // Everything moves, and blocks are wanted again at once.
  static SimulationOptions moving() {
    SimulationOptions options;
    options.offload.emplace();
    options.offload->window_tensors = 1;
    options.offload->prefetch_bytes = 4096;
    return options;
  }
  // Into the pool of a copy stream, one of two.
  static SimulationOptions published() {
    SimulationOptions options;
    options.offload = trl_options();
    options.offload->window_tensors = 1;
    options.offload->copy_streams = CopyStreams::kTwo;
    return options;
  }

  const fs::path log_ =
      fs::path(::testing::TempDir()) / ("ferry_stream_log_" + std::to_string(::getpid()));
};

TEST_F(StreamLogTest, AStepIsClean) {
  for (const SimulationOptions& options : {SimulationOptions(), moving(), published()}) {
    const check::LogReport report = check(options);
    EXPECT_GT(report.lines, 50u);
    for (const check::LogViolation& each : report.violations) ADD_FAILURE() << each.message;
  }
}

TEST_F(StreamLogTest, AStepLeftOutIsFound) {
  const auto found = [&](SimulationOptions options, Step step) {
    options.mutation = Mutation{step, Bend::kDrop};
    return !check(options).violations.empty();
  };
  for (const Step step :
       {Step::kProduced, Step::kOffloadAfterProducer, Step::kOffloaded, Step::kEvict, Step::kReady,
        Step::kReloadAfterReady, Step::kReloaded, Step::kConsume, Step::kHostReturn}) {
    EXPECT_TRUE(found(moving(), step)) << name(step);
  }
  // There a reload does not follow what its consumer was given, and so not the eviction.
  for (const Step step : {Step::kReloadAfterOffload, Step::kNodeDone, Step::kReleaseAfterNode}) {
    EXPECT_TRUE(found(published(), step)) << name(step);
  }
}

TEST_F(StreamLogTest, StreamsAreCalledWhatTheyAre) {
  Machine machine({});
  EXPECT_EQ(stream_name(machine.compute_stream(0)), "compute");
  EXPECT_EQ(stream_name(machine.lane(Lane::kDeviceToHost)), "d2h");
  EXPECT_EQ(stream_name(machine.lane(Lane::kHostToDevice)), "h2d");
  EXPECT_EQ(stream_name(machine.compute_stream(1)), "compute 1");
  EXPECT_EQ(stream_name(machine.compute_stream(2)), "compute 2");
}

}  // namespace
}  // namespace ferry::sim
