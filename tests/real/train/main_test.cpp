// ferry-train as its users meet it: output, exit codes, and the same losses always.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/decision_log.h"
#include "formats/text_file.h"
#include "real/train/exit_code.h"
#include "tests/real/sanitized.h"
#include "tests/real/train/program.h"

namespace ferry::real::train {
namespace {

using test::lines;
using test::losses;
using test::ProgramTest;
using test::Result;

static_assert(int{kOk} == int{cli::kOk} && int{kUsage} == int{cli::kUsage} &&
              int{kDoesNotFit} == int{cli::kDoesNotFit} &&
              int{kResourceMissing} == int{cli::kResourceMissing} &&
              int{kInternal} == int{cli::kInternal});

TEST_F(ProgramTest, ALineAStepForMachines) {
  const Result result = test::ferry_train(gpt() + "--steps 3 --json");
  EXPECT_EQ(result.code, kOk) << result.err;
  const auto all = lines(result.out);
  ASSERT_EQ(all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<std::string> keys;
    for (const auto& [key, value] : all[i].items()) keys.insert(key);
    EXPECT_EQ(keys, (std::set<std::string>{"schema", "step", "loss", "seconds",
                                           "forward_backward_seconds", "peak_bytes",
                                           "reserved_bytes", "rss_bytes", "moved_bytes"}));
    EXPECT_EQ(all[i]["schema"], 1);
    EXPECT_EQ(all[i]["step"], i + 1);
    EXPECT_GT(all[i]["forward_backward_seconds"], 0.0);
    EXPECT_GT(all[i]["seconds"], all[i]["forward_backward_seconds"]);
    EXPECT_GT(all[i]["peak_bytes"], 4 * 4 * 2 * 12 * 32 * 32);  // weights and moments alone
    EXPECT_GT(all[i]["rss_bytes"], all[i]["peak_bytes"]);
    EXPECT_EQ(all[i]["reserved_bytes"], 0);  // no caching allocator
    EXPECT_EQ(all[i]["moved_bytes"], 0);
  }
  // No step's peak grows: nothing is left behind.
  EXPECT_EQ(all[1]["peak_bytes"], all[2]["peak_bytes"]);
}

TEST_F(ProgramTest, ASummaryForPeople) {
  const Result result = test::ferry_train(resnet() + "--steps 2");
  EXPECT_EQ(result.code, kOk);
  EXPECT_EQ(result.err, "");  // no terminal, no bar
  EXPECT_TRUE(result.out.starts_with("resnet keep: step 2, loss ")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
}

TEST_F(ProgramTest, EveryPolicyComputesTheSameLosses) {
  for (const std::string& model : {gpt(), llama(), resnet()}) {
    const auto with = [&](const std::string& policy) {
      return test::ferry_train(model + "--steps 4 --json " + policy);
    };
    const std::vector<std::string> keep = losses(with(""));
    ASSERT_EQ(keep.size(), 4u);
    const std::string tight = "--policy offload --window 0 --min-bytes 0 ";
    const Result offload = with(tight);
    EXPECT_EQ(losses(offload), keep);
    EXPECT_GT(lines(offload.out)[1]["moved_bytes"], 1000);
    EXPECT_EQ(losses(with(tight + "--prefetch 0 --disk " + folder_.path(""))), keep);
    const Result checkpoint = with("--policy checkpoint");
    EXPECT_EQ(losses(checkpoint), keep);
    EXPECT_EQ(lines(checkpoint.out)[1]["moved_bytes"], 0);
    EXPECT_EQ(losses(with("--policy mixed")), keep);
  }
}

TEST_F(ProgramTest, OffloadingLowersThePeak) {
  const std::string model =
      "gpt --layers 6 --width 32 --heads 2 --context 64 --batch 8 --threads 1 --steps 3 --json "
      "--data " +
      folder_.text();
  const auto peak = [&](const std::string& policy) {
    const Result result = test::ferry_train(model + policy);
    EXPECT_EQ(result.code, kOk) << result.err;
    return lines(result.out).back()["peak_bytes"].get<std::int64_t>();
  };
  const std::int64_t keep = peak("");
  EXPECT_LT(peak(" --policy offload --window 64KiB --prefetch 64KiB"), keep * 6 / 10);
}

// Measured by the kernel, not counted by us.
TEST_F(ProgramTest, OnDiskTheResidentSizeFalls) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  const std::string model =
      "gpt --layers 8 --width 128 --heads 4 --context 128 --batch 16 --threads 1 --steps 2 --json "
      "--data " +
      folder_.text();
  const auto step = [&](const std::string& policy) {
    const Result result = test::ferry_train(model + policy);
    EXPECT_EQ(result.code, kOk) << result.err;
    return lines(result.out).back();
  };
  const auto keep = step("");
  const auto disk =
      step(" --policy offload --window 8MiB --prefetch 8MiB --min-bytes 64KiB --disk " +
           folder_.path(""));
  EXPECT_EQ(disk["loss"], keep["loss"]);
  const auto activations = keep["peak_bytes"].get<std::int64_t>() / 2;  // at the least
  EXPECT_LT(disk["rss_bytes"].get<std::int64_t>(),
            keep["rss_bytes"].get<std::int64_t>() - activations / 2);
}

TEST_F(ProgramTest, TheDecisionsAreLogged) {
  const std::string log = folder_.path("log.jsonl");
  const std::string run =
      gpt() + "--steps 2 --policy offload --window 0 --min-bytes 1KiB --decisions " + log;
  EXPECT_EQ(test::ferry_train(run).code, kOk);
  const std::string first = read_file(log);
  std::set<DecisionKind> decisions;
  std::set<std::uint64_t> runs;
  const DecisionLog read = read_decision_log(log);
  EXPECT_EQ(read.options.min_bytes, 1024);
  EXPECT_EQ(read.options.window_bytes, 0);
  for (const Decision& decision : read.decisions) {
    decisions.insert(decision.kind);
    runs.insert(decision.run);
    EXPECT_GE(decision.bytes, 1024);
  }
  EXPECT_EQ(runs.size(), 2u);
  for (const DecisionKind decision :
       {DecisionKind::kPack, DecisionKind::kEvict, DecisionKind::kUnpack, DecisionKind::kReturn}) {
    EXPECT_TRUE(decisions.contains(decision)) << name(decision);
  }
  // No times and no addresses: another run decides the same.
  EXPECT_EQ(test::ferry_train(run).code, kOk);
  EXPECT_EQ(read_file(log), first);
}

TEST_F(ProgramTest, TheTraceIsJson) {
  const std::string trace = folder_.path("trace.json");
  EXPECT_EQ(
      test::ferry_train(gpt() + "--steps 1 --policy offload --window 0 --trace " + trace).code,
      kOk);
  EXPECT_GT(nlohmann::json::parse(read_file(trace))["traceEvents"].size(), 10u);
}

TEST_F(ProgramTest, WrongUsageIsTwo) {
  expect_refused("", kUsage, "subcommand");
  expect_refused("bert", kUsage, "");
  expect_refused("resnet --heads 2", kUsage, "--heads");
  expect_refused("gpt --width 30 --heads 4", kUsage, "--width: expected a multiple of --heads");
  expect_refused("gpt --layers 0", kUsage, "--layers");
  expect_refused("gpt --dropout 1", kUsage, "--dropout");
  expect_refused("gpt --policy magic", kUsage, "--policy");
  expect_refused("gpt --device tpu", kUsage, "--device");
  expect_refused("llama --width 36 --heads 4 --kv-heads 4", kUsage,
                 "--width: expected a multiple of twice --heads");
  expect_refused("llama --kv-heads 3", kUsage, "--kv-heads: expected a divisor of --heads");
  expect_refused("llama --stages 2", kUsage, "--stages");  // a GPT's alone
  expect_refused("gpt --preset llama-1b", kUsage, "--preset");
  expect_refused("gpt --preset gpt2 --heads 5", kUsage, "--width: expected a multiple of --heads");
  expect_refused("gpt --dtype f16", kUsage, "--dtype");
  expect_refused("resnet --images 10 --batch 11", kUsage,
                 "--batch: expected no more than --images");
}

TEST_F(ProgramTest, OptionsThatContradictEachOtherAreTwo) {
  expect_refused("gpt --disk /tmp", kUsage,
                 "--disk: expected with --policy offload, offload-some or mixed");
  expect_refused("gpt --policy offload --disk-limit 1GiB", kUsage,
                 "--disk-limit is called --disk-bytes-max now");
  expect_refused("gpt --policy offload --disk-bytes-max 1GiB", kUsage,
                 "--disk-bytes-max: expected with --disk");
  expect_refused("gpt --keep-when-full", kUsage, "--keep-when-full: expected with --policy");
  expect_refused("gpt --policy offload --window 1Gb", kUsage, "--window: expected a size");
  expect_refused("gpt --decisions /tmp/log", kUsage, "--decisions: expected with --policy");
  expect_refused("gpt --save-every 2", kUsage, "--save-every: expected with --save");
  expect_refused("gpt --policy offload --plan x", kUsage,
                 "--plan: expected with --policy offload-some or mixed");
  expect_refused("gpt --policy checkpoint --window 1MiB", kUsage,
                 "--window: expected with --policy offload, or mixed without a plan");
  expect_refused("gpt --policy offload-some", kUsage, "--capture");
}

TEST_F(ProgramTest, BadFilesAreTwo) {
  folder_.write("foreign", "nothing of ours");
  expect_refused(gpt() + "--resume " + folder_.path("foreign"), kUsage,
                 "expected a training's state");
  expect_refused(gpt() + "--resume " + folder_.path("nowhere"), kUsage, "nowhere");
  expect_refused(gpt() + "--policy offload-some --plan " + folder_.path("foreign"), kUsage,
                 "foreign");
  expect_refused("gpt --data " + folder_.path("nowhere"), kUsage, "expected a folder of text");
  std::filesystem::create_directory(folder_.path("empty"));
  expect_refused("gpt --data " + folder_.path("empty"), kUsage, "expected at least");
}

TEST_F(ProgramTest, MissingResourcesAreSeven) {
  expect_refused(gpt() + "--steps 1 --save " + folder_.path("nowhere/state"), kResourceMissing,
                 "nowhere/state");
  expect_refused(gpt() + "--policy offload --disk " + folder_.path("nowhere"), kResourceMissing,
                 "nowhere");
  expect_refused(gpt() +
                     "--policy offload --window 0 --min-bytes 0 --disk-bytes-max 64KiB --disk " +
                     folder_.path(""),
                 kResourceMissing, "");
}

// It ended the one above.
TEST_F(ProgramTest, AFullFileNeedNotEndATraining) {
  const Result full =
      test::ferry_train(gpt() + "--steps 2 --policy offload --window 0 --min-bytes 0 " +
                        "--keep-when-full --disk-bytes-max 64KiB --disk " + folder_.path(""));
  EXPECT_EQ(full.code, 0) << full.err;
}

TEST_F(ProgramTest, NoGpuIsSeven) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // wherever this runs
  const Result result = test::ferry_train(gpt() + "--steps 1 --device cuda");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_NE(result.err.find("finds no GPU"), std::string::npos) << result.err;
}

TEST_F(ProgramTest, OutOfMemoryIsThree) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs its address space";
  // One weight of 48 GiB, where the process may have 24.
  std::vector<std::string> argv = {"/bin/sh", "-c", "ulimit -v 25165824; exec \"$0\" \"$@\""};
  for (const std::string& word : test::ferry_train_argv(
           "gpt --layers 1 --width 65536 --heads 1 --threads 1 --data " + folder_.text())) {
    argv.push_back(word);
  }
  const Result result = test::run(argv);
  EXPECT_EQ(result.code, kDoesNotFit);
  EXPECT_TRUE(result.err.starts_with("ferry: out of memory: ")) << result.err;
}

TEST_F(ProgramTest, FerryTrainIsFerryTrain) {
  EXPECT_EQ(test::run({FERRY_PROGRAM, "train", "--help"}).out, test::ferry_train("--help").out);
  const Result direct = test::ferry_train(resnet() + "--steps 2 --json");
  std::vector<std::string> argv = test::ferry_train_argv("train " + resnet() + "--steps 2 --json");
  argv[0] = FERRY_PROGRAM;
  EXPECT_EQ(losses(test::run(argv)), losses(direct));
  EXPECT_EQ(test::run({FERRY_PROGRAM, "train", "gpt", "--layers", "0"}).code, kUsage);
}

TEST_F(ProgramTest, WithoutFerryTrainItIsSevenAndSaysWhatToDo) {
  std::filesystem::copy_file(FERRY_PROGRAM, folder_.path("ferry"));
  const Result result = test::run({folder_.path("ferry"), "train", "gpt", "--steps", "1"});
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("./dev "), std::string::npos) << result.err;
}

}  // namespace
}  // namespace ferry::real::train
