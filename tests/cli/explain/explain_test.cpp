// `ferry explain`, as its users meet it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/memory_snapshot.h"
#include "formats/pickle_write.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

constexpr std::uint64_t kAddress = 0x10000000;
constexpr std::int64_t kMiB = 1 << 20;

class ExplainTest : public PlanFolder {
 protected:
  // A block of 1 MiB from before the history, one of 2 MiB that a line of forward requested and
  // freed, and a request of 64 MiB that failed.
  static MemorySnapshot sample() {
    MemorySnapshot snapshot;
    MemorySegment segment;
    segment.address = kAddress;
    segment.bytes = 4 * kMiB;
    segment.blocks = {{kAddress, kMiB, kMiB, BlockState::kAllocated},
                      {kAddress + kMiB, 3 * kMiB, 0, BlockState::kInactive}};
    snapshot.segments = {segment};
    snapshot.frames = {{"/x/site-packages/torch/nn/modules/linear.py", "forward", 3},
                       {"/x/site-packages/torch/nn/modules/module.py", "_call_impl", 4},
                       {"/x/model.py", "forward", 12}};
    snapshot.stacks = {{}, {0, 1, 2}};
    snapshot.traces = {{event(MemoryAction::kAlloc, kAddress + kMiB, 2 * kMiB),
                        event(MemoryAction::kOom, 512, 64 * kMiB),
                        event(MemoryAction::kFreeRequested, kAddress + kMiB, 2 * kMiB),
                        event(MemoryAction::kFreeCompleted, kAddress + kMiB, 2 * kMiB)}};
    return snapshot;
  }
  static MemoryEvent event(MemoryAction action, std::uint64_t address, std::int64_t bytes) {
    MemoryEvent event;
    event.action = action;
    event.address = address;
    event.bytes = bytes;
    event.stack = action == MemoryAction::kAlloc || action == MemoryAction::kOom ? 1 : kNoStack;
    return event;
  }
  void write_snapshot(const MemorySnapshot& snapshot) const {
    write("snapshot.pickle", to_pickle(snapshot));
  }
};

TEST_F(ExplainTest, ThePeaksOwnersAreNamedByLineAndOperator) {
  write_snapshot(sample());
  const Result result = ferry("explain snapshot.pickle --card tiny.toml");
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_EQ(result.err, "");
  for (const std::string part : {
           "cuda:0, at its peak, entry 2 of 4: 3.00 MiB allocated in 2 blocks, 4.00 MiB reserved",
           "\nNext: ferry plan train.py --card tiny.toml, with the script that trains, finds what ",
           "Out of memory: 64.0 MiB more were requested, and 512 B were free on the device",
           "the request that failed: x/model.py:12 in forward (linear)",
           "forward  x/model.py:12 in forward (linear)",
           "earlier  before the history began",
           "1.00 MiB  fragments: 1 holes between blocks",
           "recompute: not known from a snapshot",
       }) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

TEST_F(ExplainTest, JsonHasTheSameFigures) {
  write_snapshot(sample());
  const Result result = ferry("explain snapshot.pickle --card tiny.toml --json");
  ASSERT_EQ(result.code, kOk) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["peak_bytes"], 67 * kMiB);
  EXPECT_EQ(json["failed"]["bytes"], 64 * kMiB);
  ASSERT_EQ(json["owners"].size(), 3u);
  std::int64_t bytes = 0;
  for (const auto& owner : json["owners"]) bytes += owner["bytes"].get<std::int64_t>();
  EXPECT_EQ(bytes, json["peak_bytes"]);
  EXPECT_EQ(json["owners"][1]["file"], "/x/model.py");
  EXPECT_EQ(json["owners"][1]["line"], 12);
  EXPECT_EQ(json["owners"][1]["operator"], "linear");
  // A byte takes a nanosecond on this card, out and back.
  EXPECT_EQ(json["owners"][1]["offload_ns"], 2 * 2 * kMiB);
  EXPECT_TRUE(json["owners"][1]["recompute_ns"].is_null());
  EXPECT_EQ(json["unused"]["holes_bytes"], kMiB);
}

TEST_F(ExplainTest, WithoutAHistoryItIsTheMomentOfTheSnapshot) {
  MemorySnapshot snapshot = sample();
  snapshot.traces.clear();
  snapshot.segments[0].blocks[0].stack = 1;
  write_snapshot(snapshot);
  const Result result = ferry("explain snapshot.pickle");
  EXPECT_EQ(result.code, kOk);
  EXPECT_NE(result.out.find("when the snapshot was taken: 1.00 MiB allocated"), std::string::npos);
  EXPECT_NE(result.err.find("call torch.cuda.memory._record_memory_history() before"),
            std::string::npos)
      << result.err;
}

TEST_F(ExplainTest, WithoutStacksItShowsSizesAndSaysHowToRecordThem) {
  MemorySnapshot snapshot = sample();
  for (MemoryEvent& event : snapshot.traces[0]) event.stack = kNoStack;
  write_snapshot(snapshot);
  const Result result = ferry("explain snapshot.pickle");
  EXPECT_EQ(result.code, kNotJudged);
  EXPECT_NE(result.out.find("blocks of 2.00 MiB\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  the request that failed\n"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("_record_memory_history(stacks=\"all\")"), std::string::npos)
      << result.err;
}

// Threads of backward have no Python frames.
TEST_F(ExplainTest, ItSaysHowToRecordTheFramesOfBackward) {
  MemorySnapshot snapshot = sample();
  snapshot.traces[0][1].stack = kNoStack;
  write_snapshot(snapshot);
  const Result result = ferry("explain snapshot.pickle");
  EXPECT_EQ(result.code, kOk);
  EXPECT_NE(
      result.err.find("64.0 MiB have no Python frames: _record_memory_history(stacks=\"all\")"),
      std::string::npos)
      << result.err;
}

TEST_F(ExplainTest, WhatIsNoSnapshotIsRefusedInWords) {
  pickle::Writer list;
  list.begin_list();
  list.end_list();
  write("list.pickle", list.finish());
  expect_refused("explain list.pickle", "list.pickle: expected a memory snapshot of PyTorch");
  write_snapshot({});
  expect_refused("explain snapshot.pickle",
                 "snapshot.pickle: expected memory of a CUDA device, found none");
  write("broken.pickle", "\x80\x02}(X");
  expect_refused("explain broken.pickle", "broken.pickle: ");
  write("text.txt", "not a pickle\n");
  expect_refused("explain text.txt", "text.txt: expected a memory snapshot of PyTorch");
  expect_refused("explain chain.jsonl", "chain.jsonl: expected a pickle (such as a memory");
  expect_refused("explain nowhere.pickle", "nowhere.pickle: ");
  write_snapshot(sample());
  expect_refused("explain snapshot.pickle --device 3", "--device: expected a device with memory");
  expect_refused("explain snapshot.pickle --card none", "none: ");
}

// A pickle is a program. Python's own reader would run this one.
TEST_F(ExplainTest, APickleIsNeverExecuted) {
  write("evil.pickle",
        "\x80\x02"
        "cposix\nsystem\nX\x0a\x00\x00\x00touch evil\x85R.");
  EXPECT_EQ(ferry("explain evil.pickle").code, kUsage);
  EXPECT_FALSE(exists("evil"));
}

TEST_F(ExplainTest, AStreamLogIsExplainedByItsOperators) {
  ASSERT_EQ(ferry("simulate blocks.jsonl --card tiny.toml --policy keep --log run.jsonl").code,
            kOk);
  const Result result = ferry("explain run.jsonl --json");
  ASSERT_EQ(result.code, kOk) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  std::int64_t bytes = 0;
  for (const auto& owner : json["owners"]) bytes += owner["bytes"].get<std::int64_t>();
  EXPECT_EQ(bytes, json["peak_bytes"]);
  EXPECT_GT(bytes, 0);
  EXPECT_NE(ferry("explain run.jsonl").out.find("run.jsonl: at its peak, operation "),
            std::string::npos);
  expect_refused("explain run.jsonl --device 0", "--device: expected with a memory snapshot");
  write("idle.jsonl", "{\"op\":\"device_sync\"}\n");
  expect_refused("explain idle.jsonl", "idle.jsonl: expected allocations of device memory");
}

// The simulator's own snapshots have no stacks; their peak is that of the table.
TEST_F(ExplainTest, TheSimulatedPeakIsThatOfTheTable) {
  const Result run =
      ferry("simulate blocks.jsonl --card tiny.toml --policy keep --snapshot run.pickle --json");
  ASSERT_EQ(run.code, kOk) << run.err;
  const auto row = nlohmann::json::parse(run.out)["rows"][0];
  const auto json = nlohmann::json::parse(ferry("explain run.pickle --json").out);
  EXPECT_EQ(json["peak_bytes"], row["device_requested_bytes"]);
}

}  // namespace
}  // namespace ferry::cli
