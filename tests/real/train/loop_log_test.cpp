// The stream log of a real training: `ferry check` finds nothing in it under any policy, and finds
// the wait that is missing, where the log lost it or where it was never made.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/staged_plan.h"
#include "formats/text_file.h"
#include "real/api/stream_logged.h"
#include "real/autograd/torch_autograd.h"
#include "real/cpu/cpu_device.h"
#include "real/log/log_streams.h"
#include "real/train/exit_code.h"
#include "real/train/options.h"
#include "real/train/workload.h"
#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "tests/real/sanitized.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

using test::Result;
using Lines = std::vector<nlohmann::json>;

Lines parse_lines(const std::string& text) {
  Lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

class StreamLogTest : public ::testing::Test {
 protected:
  std::string gpt() const {
    return "gpt --layers 2 --width 32 --heads 2 --context 32 --batch 2 --dropout 0.1 --threads 1 "
           "--steps 2 --data " +
           folder_.text() + " ";
  }
  static std::string resnet() {
    return "resnet --layers 1 --width 8 --batch 4 --images 20 --threads 1 --steps 2 ";
  }

  std::string train(const std::string& arguments) const {
    const Result trained = test::ferry_train(arguments + " --log " + log_);
    EXPECT_EQ(trained.code, kOk) << arguments << "\n" << trained.err;
    return read_file(log_);
  }
  Result check() const { return test::run({FERRY_PROGRAM, "check", log_}); }
  void expect_clean(const std::string& what) const {
    const Result checked = check();
    EXPECT_EQ(checked.code, cli::kOk) << what << "\n" << checked.out.substr(0, 2000);
  }
  // Without the lines that hold `gone`: all of them, or one.
  int check_without(const std::string& log, const std::string& gone, int which = kAll) const {
    std::string rest;
    int met = 0;
    std::istringstream in(log);
    for (std::string line; std::getline(in, line);) {
      const bool meant = line.find(gone) != std::string::npos;
      if (meant && (which == kAll || which == met)) {
        ++met;
      } else {
        met += meant ? 1 : 0;
        rest += line + "\n";
      }
    }
    EXPECT_GT(met, which == kAll ? 0 : which) << gone;
    folder_.write("log", rest);
    return check().code;
  }
  static constexpr int kAll = -1;

  test::Folder folder_;
  const std::string log_ = folder_.path("log");
};

TEST_F(StreamLogTest, EveryPolicyIsClean) {
  const std::string tight = "--window 0 --min-bytes 0 ";
  for (const std::string& model : {gpt(), resnet()}) {
    const std::vector<std::string> policies = {
        "--policy keep",
        "--policy checkpoint",
        "--policy offload",
        "--policy offload " + tight,
        "--policy offload --prefetch 0 " + tight,
        "--policy offload --window 16KiB --prefetch 16KiB --min-bytes 0",
        "--policy offload " + tight + "--disk " + folder_.path(""),
        "--policy mixed",
        "--policy mixed " + tight,
        "--microbatches 2 --policy mixed " + tight,
    };
    for (const std::string& policy : policies) {
      train(model + policy);
      expect_clean(model + policy);
    }
  }
}

// A pipeline's threads are streams of their own: what one takes of another's is ordered, or found.
class PipelineLogTest : public StreamLogTest {
 protected:
  std::string staged() const {
    return "gpt --layers 2 --width 32 --heads 2 --context 32 --batch 4 --microbatches 4 --threads "
           "1 "
           "--steps 2 --data " +
           folder_.text() + " --stages ";
  }
};

TEST_F(PipelineLogTest, EveryScheduleAndPolicyIsClean) {
  const std::string tight = " --window 0 --min-bytes 0";
  for (const std::string& stages :
       {std::string("1"), std::string("2"), std::string("3 --schedule gpipe"),
        std::string("4 --schedule interleaved"), std::string("2 --pipe-checkpoint always"),
        "2 --policy offload" + tight, "2 --policy mixed" + tight,
        "4 --schedule interleaved --pipe-checkpoint always --policy offload --prefetch 0" + tight,
        "2 --policy offload" + tight + " --disk " + folder_.path("")}) {
    const std::string log = train(staged() + stages);
    expect_clean(stages);
    const bool several = !stages.starts_with("1");
    EXPECT_EQ(log.find("\"stream\":\"compute 1\"") != std::string::npos, several) << stages;
    EXPECT_NE(log.find("aten.native_layer_norm_backward"), std::string::npos) << stages;
  }
}

// There each device moves what its own stages save, and the inputs of those that run again.
TEST_F(PipelineLogTest, APipelinesPlanIsClean) {
  const std::string file = folder_.path("plan");
  StagedPlan plan;
  plan.program = "gpt";
  plan.schedule = ScheduleKind::kInterleaved;
  plan.devices = 2;
  plan.microbatches = 4;
  plan.options = {{"bytes_min", 64}, {"window_bytes", 0}, {"prefetch_bytes", 4096}};
  plan.stages = {{1, "begin", "begin", StagePolicy::kKeep},
                 {1, "checkpoint.0", "checkpoint.0", StagePolicy::kOffload},
                 {1, "checkpoint.1", "checkpoint.1", StagePolicy::kCheckpointOffload},
                 {1, "end", "end", StagePolicy::kOffload}};
  write_plan(file, plan);
  const std::string log = train(staged() + "4 --plan " + file);
  expect_clean("by a plan");
  for (const char* device : {"d2h", "d2h 2", "h2d", "h2d 2"}) {  // each has two lanes
    EXPECT_NE(log.find("\"op\":\"copy\",\"stream\":\"" + std::string(device) + "\""),
              std::string::npos)
        << device;
  }
}

// No other order makes up for what a stage did not wait for of the one before or after it.
TEST_F(PipelineLogTest, AHandOverLeftOutIsFound) {
  const std::string log = train(staged() + "2");
  int found = 0, all = 0;
  for (std::size_t at = log.find("\"take over\""); at != std::string::npos;
       at = log.find("\"take over\"", at + 1)) {
    ++all;
  }
  EXPECT_EQ(all, 2 * (4 + 4)) << "each step: four micro-batches forward, four backward";
  for (int i = 0; i < 8; ++i) {
    found += check_without(log, "\"name\":\"take over\"", i) == cli::kViolated ? 1 : 0;
  }
  EXPECT_EQ(found, 8);
  EXPECT_EQ(check_without(log, "\"name\":\"end\""), cli::kViolated) << "the optimizer reads them";
  EXPECT_EQ(check_without(log, "\"name\":\"begin\""), cli::kViolated)
      << "the batch comes from there";
}

// Plans bring what no option asks for: TRL's pool and its single copy stream.
TEST_F(StreamLogTest, EveryPlanIsClean) {
  const std::string program = folder_.path("program"), plan = folder_.path("plan");
  for (const std::string& model : {gpt(), resnet()}) {
    ASSERT_EQ(test::ferry_train(model + "--capture " + program).code, kOk);
    for (const std::string policy : {"offload", "prefetch", "offload-some", "checkpoint",
                                     "checkpoint-nth", "checkpoint-offload", "mixed"}) {
      const Result planned = test::run(
          {FERRY_PROGRAM, "plan", program, "--card", "rtx4090", "--policy", policy, "-o", plan});
      ASSERT_EQ(planned.code, kOk) << planned.err;
      if (policy == "offload") {
        auto settings = nlohmann::ordered_json::parse(read_file(plan));
        settings["options"]["copy_streams"] = 1;
        settings["options"]["reload_pool"] = 1;
        settings["options"]["window_packs"] = 5;
        std::ofstream(plan) << settings.dump();
      }
      const std::string log = train(model + "--policy mixed --plan " + plan);
      expect_clean(model + policy);
      if (policy != "offload") continue;
      EXPECT_NE(log.find("\"name\":\"release after node\""), std::string::npos);
      EXPECT_NE(log.find("\"pool\":\"malloc\""), std::string::npos);
    }
  }
}

// What was run is in it.
TEST_F(StreamLogTest, HasOpsCallsAndBytes) {
  std::set<std::string> names, ops, streams;
  std::map<std::string, std::int64_t> copied;
  std::map<std::int64_t, std::string> recorded;  // each event's stream
  int returned = 0;
  for (const auto& line :
       parse_lines(train(gpt() + "--policy offload --window 0 --min-bytes 1KiB"))) {
    ops.insert(line["op"]);
    if (line.contains("stream")) streams.insert(line["stream"]);
    if (line.contains("name")) names.insert(line["name"]);
    if (line["op"] == "copy") copied[line["name"]] += line["src"]["bytes"].get<std::int64_t>();
    if (line["op"] == "record") recorded[line["event"]] = line["stream"];
    if (line["op"] != "record_use" || line["name"] != "host return") continue;
    // The host's bytes stay until what the event has recorded, and not for all later work.
    ++returned;
    ASSERT_TRUE(line.contains("event"));
    EXPECT_EQ(recorded[line["event"]], line["stream"]);
  }
  EXPECT_GT(returned, 0);
  EXPECT_EQ(streams, (std::set<std::string>{"compute", "d2h", "h2d"}));
  for (const char* op : {"stream", "kernel", "copy", "record", "wait", "event_destroy", "alloc",
                         "free", "record_use"}) {
    EXPECT_TRUE(ops.contains(op)) << op;
  }
  for (const char* name :
       {"aten.mm", "aten.native_layer_norm_backward", "aten.addcdiv_", "produced",
        "offload after producer", "host allocate", "offload", "offloaded", "evict",
        "reload allocate", "ready", "reload after ready", "reload after offload", "reload",
        "reloaded", "consume", "host return"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("aten.view"));
  EXPECT_FALSE(names.contains("aten.t"));
  EXPECT_GT(copied["reload"], 1000);
  EXPECT_GE(copied["offload"], copied["reload"]);
}

TEST_F(StreamLogTest, ALineLeftOutIsFound) {
  const std::string tight = "--policy offload --window 0 --min-bytes 0 ";
  for (const std::string& model : {gpt(), resnet()}) {
    for (const std::string& policy : {tight, tight + "--disk " + folder_.path("")}) {
      const std::string log = train(model + policy);
      // One alone may be made up for by the next one, of a tensor that the same node saved.
      for (const std::string wait : {"consume", "offload after producer"}) {
        int found = 0;
        for (int i = 0; i < 6; ++i) {
          found += check_without(log, "\"name\":\"" + wait + "\"", i) == cli::kViolated ? 1 : 0;
        }
        EXPECT_GE(found, 2) << wait << " " << policy;
      }
      // Host bytes that go back under a copy.
      EXPECT_EQ(check_without(log, "\"op\":\"record_use\""), cli::kViolated) << policy;
      if (kSanitized) continue;  // a sanitizer gives no block out again soon
      EXPECT_EQ(check_without(log, "\"name\":\"evict\""), cli::kViolated) << policy;
    }
  }
}

// A device that takes one step wrongly. The copies run as they are given, so that nothing happens
// to the bytes: what is found is the order.
class BentTest : public StreamLogTest {
 protected:
  Result check_bent(const CoreOptions& options, std::optional<Mutation> mutation) const {
    return check_bent(gpt(), options, mutation);
  }
  Result check_bent(const std::string& arguments, const CoreOptions& options,
                    std::optional<Mutation> mutation) const {
    const Options training = test::parse(arguments);
    const auto workload = make_workload(training);
    LogStreams streams(log_, c10::Device(c10::kCPU));
    const auto log = StreamLog::active();
    CpuDeviceOptions device;
    device.pace = std::make_shared<EagerPace>();
    device.pool_observer = [log](const PoolBlock& block) { log->pool_block(block); };
    using Logged = StreamLogged<CpuDevice>;
    Offloader<Bent<Logged>, TorchAutograd> offloader(
        Bent<Logged>(Logged(CpuDevice(device), log), mutation), TorchAutograd(), options);
    for (const torch::Tensor& parameter : workload->module().parameters()) {
      offloader.exempt(parameter);
    }
    for (int step = 0; step < 2; ++step) {
      offloader.begin_run();
      const HooksGuard<TorchAutograd> guard(TorchAutograd(), offloader.hooks());
      if (workload->is_pipelined()) {
        workload->pipelined_step(workload->batch(step));
      } else {
        workload->loss(workload->batch(step)).backward();
      }
    }
    streams.commit();
    return check();
  }
  static CoreOptions tight() {
    CoreOptions options;
    options.min_bytes = 0;
    options.window_bytes = 0;
    return options;
  }
  static CoreOptions published() {
    CoreOptions options = trl_options();
    options.min_bytes = 0;
    options.window_tensors = 1;
    return options;
  }
};

TEST_F(BentTest, TheDeviceItselfIsClean) {
  for (const CoreOptions& options : {tight(), published()}) {
    const Result checked = check_bent(options, std::nullopt);
    EXPECT_EQ(checked.code, cli::kOk) << checked.out.substr(0, 2000);
  }
}

TEST_F(BentTest, AWaitThatWasNotMadeIsFound) {
  const auto found = [&](const CoreOptions& options, Step step) {
    return check_bent(options, Mutation{step, Bend::kDrop}).code == cli::kViolated;
  };
  for (const Step step : {Step::kProduced, Step::kOffloadAfterProducer, Step::kReloaded,
                          Step::kConsume, Step::kHostReturn}) {
    EXPECT_TRUE(found(tight(), step)) << name(step);
    EXPECT_TRUE(found(published(), step)) << name(step);
  }
  for (const Step step : {Step::kNodeDone, Step::kReleaseAfterNode}) {
    EXPECT_TRUE(found(published(), step)) << name(step);
  }
  if (kSanitized) return;  // a sanitizer gives no block out again soon
  for (const Step step : {Step::kOffloaded, Step::kEvict}) {
    EXPECT_TRUE(found(tight(), step)) << name(step);
  }
}

// The threads of a pipeline share the offloader, and each waits for itself.
TEST_F(BentTest, AWaitThatAPipelinesThreadsDoNotMakeIsFound) {
  const std::string staged =
      "gpt --layers 2 --width 32 --heads 2 --context 32 --batch 4 --microbatches 4 --threads 1 "
      "--stages "
      "2 "
      "--data " +
      folder_.text();
  const Result clean = check_bent(staged, tight(), std::nullopt);
  EXPECT_EQ(clean.code, cli::kOk) << clean.out.substr(0, 2000);
  for (const Step step :
       {Step::kProduced, Step::kOffloadAfterProducer, Step::kReloaded, Step::kConsume}) {
    EXPECT_EQ(check_bent(staged, tight(), Mutation{step, Bend::kDrop}).code, cli::kViolated)
        << name(step);
  }
}

TEST_F(StreamLogTest, IsThereWholeOrNotAtAll) {
  const Result nowhere = test::ferry_train(gpt() + "--log " + folder_.path("none/log"));
  EXPECT_EQ(nowhere.code, kResourceMissing);
  EXPECT_NE(nowhere.err.find("none/log"), std::string::npos) << nowhere.err;
  // A file may have 64 KiB.
  std::vector<std::string> argv = {"/bin/sh", "-c",
                                   "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""};
  for (const std::string& word : test::ferry_train_argv(gpt() + "--log " + log_)) {
    argv.push_back(word);
  }
  const Result full = test::run(argv);
  EXPECT_EQ(full.code, kResourceMissing) << full.err;
  EXPECT_NE(full.err.find("cannot write " + log_), std::string::npos) << full.err;
  EXPECT_FALSE(std::filesystem::exists(log_));
}

TEST_F(StreamLogTest, ChangesNothing) {
  const std::string run = gpt() + "--policy mixed --window 0 --min-bytes 0 --json ";
  const auto losses = [](const Result& result) {
    std::vector<std::string> all;
    for (const auto& line : parse_lines(result.out)) {
      all.push_back(line["loss"].dump() + " " + line["peak_bytes"].dump());
    }
    return all;
  };
  const auto plain = losses(test::ferry_train(run));
  EXPECT_EQ(plain.size(), 2u);
  EXPECT_EQ(losses(test::ferry_train(run + "--log " + log_)), plain);
}

}  // namespace
}  // namespace ferry::real::train
