// `ferry simulate --snapshot` and `ferry replay SNAPSHOT`, as their users meet them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/memory_snapshot.h"
#include "tests/cli/console/terminal.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

using namespace std::string_literals;

class SnapshotReplayTest : public PlanFolder {
 protected:
  static std::string simulate(const std::string& more) {
    return "simulate blocks.jsonl --card tiny.toml --snapshot run.pickle " + more;
  }
};

TEST_F(SnapshotReplayTest, EveryPolicysMemoryIsReplayed) {
  for (const std::string policy : {"keep", "offload-all", "offload", "checkpoint"}) {
    for (const std::string conf : {"", " --alloc-conf expandable_segments:True"}) {
      ASSERT_NE(ferry(simulate("--policy " + policy + conf)).code, kUsage);
      const Result replayed = ferry("replay run.pickle");
      EXPECT_EQ(replayed.code, kOk) << policy << conf << replayed.out << replayed.err;
      EXPECT_TRUE(replayed.out.starts_with("the same: ")) << replayed.out;
    }
  }
}

TEST_F(SnapshotReplayTest, ItsPeakIsTheTablesAndItIsOfOneRun) {
  const Result result = ferry(simulate("--policy keep --json"));
  ASSERT_EQ(result.code, kOk) << result.err;
  const auto row = nlohmann::json::parse(result.out)["rows"][0];
  const std::string bytes = read("run.pickle");
  const MemorySnapshot snapshot = parse_memory_snapshot(bytes, "run.pickle");
  std::int64_t reserved = 0;
  std::int64_t most = 0;
  for (const MemoryEvent& event : snapshot.traces.at(0)) {
    if (event.action == MemoryAction::kSegmentAlloc) reserved += event.bytes;
    if (event.action == MemoryAction::kSegmentFree) reserved -= event.bytes;
    most = std::max(most, reserved);
  }
  EXPECT_EQ(most, row["device_reserved_bytes"]);
  expect_refused(simulate("--policy keep,offload"), "--snapshot: expected with --plan or one");
}

TEST_F(SnapshotReplayTest, OnATerminalItSaysHowFarItIs) {
  ASSERT_EQ(ferry(simulate("--policy keep")).code, kOk);
  Terminal replay("NO_COLOR=1 exec '" FERRY_PROGRAM "' replay " + path("run.pickle").string());
  EXPECT_EQ(replay.end(), kOk);
  const std::size_t drawn = replay.shown().find("  entries\033[K");
  ASSERT_NE(drawn, std::string::npos) << replay.shown();
  const auto all = parse_memory_snapshot(read("run.pickle"), "run.pickle").traces.at(0).size();
  EXPECT_NE(replay.shown().find("/" + std::to_string(all) + "  entries"), std::string::npos)
      << replay.shown();
  EXPECT_NE(replay.shown().find("\r\033[K", drawn), std::string::npos) << "it is gone at the end";
  EXPECT_EQ(ferry("replay run.pickle").err, "") << "nothing to a pipe";
}

TEST_F(SnapshotReplayTest, ADifferenceIsToldAndEndsWithSix) {
  ASSERT_EQ(ferry(simulate("--policy keep --alloc-conf large_segment_size_mb:40")).code, kOk);
  const std::string bytes = read("run.pickle");
  MemorySnapshot snapshot = parse_memory_snapshot(bytes, "run.pickle");
  snapshot.conf = {};
  write("other.pickle", to_pickle(snapshot));
  const Result result = ferry("replay other.pickle");
  EXPECT_EQ(result.code, kDiffers);
  EXPECT_NE(result.out.find("different: other.pickle: device 0, entry "), std::string::npos);
  EXPECT_NE(result.out.find("\n> real       segment_alloc of 41943040 bytes at 0x"),
            std::string::npos);
  EXPECT_NE(result.out.find("\n> simulated  segment_alloc of 20971520 bytes at 0x"),
            std::string::npos)
      << result.out;
  const auto json = nlohmann::json::parse(ferry("replay --json other.pickle").out);
  EXPECT_EQ(json["kind"], "snapshot");
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["difference"]["device"], 0);
}

TEST_F(SnapshotReplayTest, WhatCannotBeReplayedIsRefused) {
  write("call.pickle", "\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."s);
  expect_refused("replay call.pickle",
                 "call.pickle: expected a memory snapshot of PyTorch "
                 "(torch.cuda.memory._dump_snapshot), found an object of posix.system");
  MemorySnapshot empty;
  empty.traces.emplace_back();
  write("empty.pickle", to_pickle(empty));
  expect_refused("replay empty.pickle", "empty.pickle: expected a snapshot with a history: call");
  expect_refused("replay empty.pickle --decisions x",
                 "empty.pickle: a memory snapshot is replayed alone");
  expect_refused("replay chain.jsonl", "--decisions: expected the decision log of a real run");
}

}  // namespace
}  // namespace ferry::cli
