// ferry-train as its users meet it: output, exit codes, signals, and the same losses always.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "cli/exit_codes.h"
#include "formats/decision_log.h"
#include "formats/text_file.h"
#include "real/train/exit_code.h"
#include "tests/real/sanitized.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

using test::Child;
using test::Result;

static_assert(int{kOk} == int{cli::kOk} && int{kUsage} == int{cli::kUsage} &&
              int{kDoesNotFit} == int{cli::kDoesNotFit} &&
              int{kResourceMissing} == int{cli::kResourceMissing});

class ProgramTest : public ::testing::Test {
 protected:
  // A GPT with dropout, and a ResNet: a few milliseconds a step.
  std::string gpt() const {
    return "gpt --layers 2 --width 32 --heads 2 --context 32 --batch 2 --dropout 0.1 --threads 1 "
           "--data " +
           folder_.text() + " ";
  }
  static std::string resnet() {
    return "resnet --layers 1 --width 8 --batch 4 --images 20 --threads 1 ";
  }

  void expect_refused(const std::string& arguments, int code, const std::string& message) const {
    const Result result = test::ferry_train(arguments);
    EXPECT_EQ(result.code, code) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with("ferry: ")) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << arguments << "\n" << result.err;
  }

  test::Folder folder_;
};

std::vector<nlohmann::json> lines(const std::string& text) {
  std::vector<nlohmann::json> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

// As printed: equal texts are equal bits.
std::vector<std::string> losses(const Result& result) {
  EXPECT_EQ(result.code, kOk) << result.err;
  std::vector<std::string> all;
  for (const auto& line : lines(result.out)) all.push_back(line["loss"].dump());
  return all;
}

TEST_F(ProgramTest, ALineAStepForMachines) {
  const Result result = test::ferry_train(gpt() + "--steps 3 --json");
  EXPECT_EQ(result.code, kOk) << result.err;
  const auto all = lines(result.out);
  ASSERT_EQ(all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<std::string> keys;
    for (const auto& [key, value] : all[i].items()) keys.insert(key);
    EXPECT_EQ(keys, (std::set<std::string>{"schema", "step", "loss", "seconds", "peak_bytes",
                                           "rss_bytes", "moved_bytes"}));
    EXPECT_EQ(all[i]["schema"], 1);
    EXPECT_EQ(all[i]["step"], i + 1);
    EXPECT_GT(all[i]["seconds"], 0.0);
    EXPECT_GT(all[i]["peak_bytes"], 4 * 4 * 2 * 12 * 32 * 32);  // weights and moments alone
    EXPECT_GT(all[i]["rss_bytes"], all[i]["peak_bytes"]);
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
  for (const std::string& model : {gpt(), resnet()}) {
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

// Capture, plan, train by the plan, and the simulator decides as the training did.
TEST_F(ProgramTest, APlanFromItsOwnCaptureIsExecutedAndReplayed) {
  const std::string program = folder_.path("gpt.jsonl"), plan = folder_.path("gpt.plan"),
                    log = folder_.path("gpt.log");
  EXPECT_EQ(test::ferry_train(gpt() + "--capture " + program).code, kOk);
  const Result planned = test::run({FERRY_PROGRAM, "plan", program, "--hardware", "rtx4090",
                                    "--policy", "offload-all", "-o", plan});
  ASSERT_EQ(planned.code, kOk) << planned.err;
  const std::vector<std::string> keep = losses(test::ferry_train(gpt() + "--steps 3 --json"));
  const std::string budget = "--policy budget --plan " + plan + " --decisions " + log;
  const Result trained = test::ferry_train(gpt() + "--steps 3 --json " + budget);
  EXPECT_EQ(losses(trained), keep);
  EXPECT_GT(lines(trained.out)[2]["moved_bytes"], 1000);
  const Result replayed = test::run({FERRY_PROGRAM, "replay", program, "--decisions", log});
  EXPECT_EQ(replayed.code, kOk) << replayed.out;
  EXPECT_TRUE(replayed.out.starts_with("the same: 3 runs of ")) << replayed.out;
  // Another model than the plan's.
  const Result other = test::ferry_train(resnet() + "--steps 1 --policy budget --plan " + plan);
  EXPECT_EQ(other.code, kUsage);
  EXPECT_NE(other.err.find("does not match the plan at saved tensor "), std::string::npos);
}

// The same with recomputed blocks. Nothing fits without them: the card's link is slow, and its
// memory small.
class RecomputingPlanTest : public ProgramTest {
 protected:
  RecomputingPlanTest() {
    const std::string card = read_file(FERRY_SOURCE_DIR "/scenarios/hardware/rtx4090.toml");
    folder_.write("slow.toml", card.substr(0, card.find("[link]")) + R"([link]
h2d = "1MB/s"
d2h = "1MB/s"
h2d_both = "1MB/s"
d2h_both = "1MB/s"
latency = "8us"
)");
    const Result captured = test::ferry_train(gpt(4) + "--capture " + program_);
    EXPECT_EQ(captured.code, kOk) << captured.err;
  }

  std::string gpt(int layers) const {
    return "gpt --layers " + std::to_string(layers) +
           " --width 64 --heads 2 --context 64 --batch 8 --dropout 0.1 --threads 1 --data " +
           folder_.text() + " ";
  }
  void plan(const std::string& policy, const std::string& budget) const {
    const Result planned =
        test::run({FERRY_PROGRAM, "plan", program_, "--hardware", folder_.path("slow.toml"),
                   "--policy", policy, "--budget", budget, "-o", plan_});
    ASSERT_EQ(planned.code, kOk) << planned.out << planned.err;
  }
  std::string planned(int layers, const char* policy) const {
    return gpt(layers) + "--steps 3 --json --policy " + policy + " --plan " + plan_ + " ";
  }
  Result replay() const {
    return test::run({FERRY_PROGRAM, "replay", program_, "--decisions", log_, "--plan", plan_});
  }

  const std::string program_ = folder_.path("gpt.jsonl");
  const std::string plan_ = folder_.path("gpt.plan");
  const std::string log_ = folder_.path("gpt.log");
};

TEST_F(RecomputingPlanTest, IsExecutedAndReplayed) {
  const Result kept = test::ferry_train(gpt(4) + "--steps 3 --json");
  const std::vector<std::string> keep = losses(kept);
  const auto peak = [](const Result& result) {
    return lines(result.out).back()["peak_bytes"].get<std::int64_t>();
  };
  for (const auto& [policy, budget, moved, train] :
       {std::tuple("mixed", "8MiB", 0, "mixed"),
        std::tuple("checkpoint-offload", "8MiB", 4, "mixed"),
        std::tuple("checkpoint-nth", "10MiB", 0, "budget")}) {
    plan(policy, budget);
    const Result trained = test::ferry_train(planned(4, train) + "--decisions " + log_);
    EXPECT_EQ(losses(trained), keep) << policy;
    EXPECT_LT(peak(trained), peak(kept) * 7 / 10) << policy;
    std::map<DecisionKind, int> decisions;
    for (const Decision& decision : read_decision_log(log_).decisions) ++decisions[decision.kind];
    EXPECT_GE(decisions[DecisionKind::kRecompute], 3) << policy;
    EXPECT_EQ(decisions[DecisionKind::kRecompute] % 3, 0) << policy;
    EXPECT_GE(decisions[DecisionKind::kPack], 3 * moved) << policy;
    const Result replayed = replay();
    EXPECT_EQ(replayed.code, kOk) << policy << "\n" << replayed.out << replayed.err;
    EXPECT_TRUE(replayed.out.starts_with("the same: 3 runs of ")) << replayed.out;
  }
}

TEST_F(RecomputingPlanTest, ARecomputeThatIsNotTheSimulatedOneDiffers) {
  plan("checkpoint-offload", "8MiB");
  EXPECT_EQ(test::ferry_train(planned(4, "mixed") + "--decisions " + log_).code, kOk);
  const DecisionLog log = read_decision_log(log_);
  const auto second = std::find_if(
      log.decisions.begin(), log.decisions.end(),
      [](const auto& each) { return each.kind == DecisionKind::kRecompute && each.run == 2; });
  ASSERT_NE(second, log.decisions.end());
  const std::size_t at = static_cast<std::size_t>(second - log.decisions.begin());
  const auto expect_different = [&](const DecisionLog& changed, const std::string& real) {
    write_decision_log(log_, changed);
    const Result replayed = replay();
    EXPECT_EQ(replayed.code, cli::kDiffers);
    EXPECT_TRUE(replayed.out.starts_with("different: run 2, decision ")) << replayed.out;
    EXPECT_NE(replayed.out.find("> real       " + real), std::string::npos) << replayed.out;
    EXPECT_NE(replayed.out.find("> simulated  recompute of segment 3 (checkpoint.3)"),
              std::string::npos)
        << replayed.out;
  };
  DecisionLog changed = log;
  changed.decisions[at].pack = 1;  // backward comes to the last one first
  expect_different(changed, "recompute of segment 1 (checkpoint.1)");
  changed = log;  // what follows it, an unpack, comes in its place
  changed.decisions.erase(changed.decisions.begin() + static_cast<std::ptrdiff_t>(at));
  expect_different(changed, "unpack of saved tensor ");
}

TEST_F(RecomputingPlanTest, OfAnotherModelIsRefusedWithWhatDiffers) {
  plan("checkpoint", "8MiB");
  for (const int layers : {3, 5}) {
    expect_refused(planned(layers, "mixed"), kUsage,
                   "the model does not match the plan at saved tensor ");
  }
  // What reaches the offloader is the same; the blocks save fewer.
  std::string without = planned(4, "budget");
  without.replace(without.find("--dropout 0.1"), 13, "--dropout 0");
  expect_refused(without, kUsage, "ferry::checkpoint: the segment saved ");
}

TEST_F(ProgramTest, SavedAndResumedUnderAnotherPolicyItIsTheSameTraining) {
  const std::string state = folder_.path("state");
  for (const std::string& model : {gpt(), resnet()}) {
    const std::vector<std::string> whole = losses(test::ferry_train(model + "--steps 5 --json"));
    for (const auto& [before, after] :
         {std::pair("keep", "offload --window 0"), std::pair("checkpoint", "keep"),
          std::pair("mixed --window 0", "checkpoint")}) {
      const std::vector<std::string> first = losses(
          test::ferry_train(model + "--steps 2 --json --policy " + before + " --save " + state));
      const std::vector<std::string> rest = losses(
          test::ferry_train(model + "--steps 5 --json --policy " + after + " --resume " + state));
      EXPECT_EQ(first, std::vector<std::string>(whole.begin(), whole.begin() + 2)) << before;
      EXPECT_EQ(rest, std::vector<std::string>(whole.begin() + 2, whole.end())) << after;
    }
  }
  test::ferry_train(gpt() + "--steps 2 --save " + state);
  const Result nothing = test::ferry_train(gpt() + "--steps 2 --resume " + state);
  EXPECT_EQ(nothing.out, "gpt keep: no step was left to do\n");
  EXPECT_EQ(nothing.code, kOk);
}

TEST_F(ProgramTest, CtrlCFinishesTheStepAndLosesNothing) {
  const std::string state = folder_.path("state");
  for (const int signal : {SIGINT, SIGTERM}) {
    Child child(test::ferry_train_argv(gpt() + "--steps 1000000 --json --save " + state));
    child.wait_for_lines(3);
    child.signal(signal);
    const Result stopped = child.end();
    EXPECT_EQ(stopped.code, 128 + signal);
    EXPECT_NE(stopped.err.find(signal == SIGINT ? "stopped by SIGINT, saved to "
                                                : "stopped by SIGTERM, saved to "),
              std::string::npos)
        << stopped.err;
    const auto done = lines(stopped.out);
    ASSERT_GE(done.size(), 3u);
    const auto last = done.back()["step"].get<std::size_t>();
    EXPECT_EQ(last, done.size());
    // What was saved is the last step that was printed.
    const std::string more = " --steps " + std::to_string(last + 2);
    const std::vector<std::string> rest =
        losses(test::ferry_train(gpt() + "--json --resume " + state + more));
    const std::vector<std::string> whole = losses(test::ferry_train(gpt() + "--json" + more));
    EXPECT_EQ(rest, std::vector<std::string>(whole.end() - 2, whole.end()));
  }
}

TEST_F(ProgramTest, ASecondCtrlCEndsIt) {
  // Steps of a second: the first signal waits for the step's end, the second does not.
  const std::string state = folder_.path("state");
  Child child(
      test::ferry_train_argv("gpt --layers 2 --width 512 --heads 8 --context 512 --batch 4 "
                             "--threads 1 --json --save " +
                             state + " --data " + folder_.text()));
  child.wait_for_lines(1);
  child.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.signal(SIGINT);
  const Result ended = child.end();
  EXPECT_EQ(ended.code, 128 + SIGINT);
  EXPECT_EQ(lines(ended.out).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(state));
}

TEST_F(ProgramTest, SaveEverySavesBetween) {
  const std::string state = folder_.path("state");
  Child child(
      test::ferry_train_argv(gpt() + "--steps 1000000 --json --save-every 2 --save " + state));
  child.wait_for_lines(4);
  child.signal(SIGKILL);
  EXPECT_EQ(child.end().code, 128 + SIGKILL);
  EXPECT_TRUE(read_file(state).starts_with("{\"ferry\":\"training\""));
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
  EXPECT_EQ(read.options.bytes_min, 1024);
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
  expect_refused("resnet --images 10 --batch 11", kUsage,
                 "--batch: expected no more than --images");
}

TEST_F(ProgramTest, OptionsThatContradictEachOtherAreTwo) {
  expect_refused("gpt --disk /tmp", kUsage,
                 "--disk: expected with --policy offload, budget or mixed");
  expect_refused("gpt --policy offload --disk-limit 1GiB", kUsage,
                 "--disk-limit: expected with --disk");
  expect_refused("gpt --policy offload --window 1Gb", kUsage, "--window: expected a size");
  expect_refused("gpt --decisions /tmp/log", kUsage, "--decisions: expected with --policy");
  expect_refused("gpt --save-every 2", kUsage, "--save-every: expected with --save");
  expect_refused("gpt --policy offload --plan x", kUsage,
                 "--plan: expected with --policy budget or mixed");
  expect_refused("gpt --policy checkpoint --window 1MiB", kUsage,
                 "--window: expected with --policy offload, or mixed without a plan");
  expect_refused("gpt --policy budget", kUsage, "--capture");
}

TEST_F(ProgramTest, BadFilesAreTwo) {
  folder_.write("foreign", "nothing of ours");
  expect_refused(gpt() + "--resume " + folder_.path("foreign"), kUsage,
                 "expected a training's state");
  expect_refused(gpt() + "--resume " + folder_.path("nowhere"), kUsage, "nowhere");
  expect_refused(gpt() + "--policy budget --plan " + folder_.path("foreign"), kUsage, "foreign");
  expect_refused("gpt --data " + folder_.path("nowhere"), kUsage, "expected a folder of text");
  std::filesystem::create_directory(folder_.path("empty"));
  expect_refused("gpt --data " + folder_.path("empty"), kUsage, "expected at least");
}

TEST_F(ProgramTest, MissingResourcesAreSeven) {
  expect_refused(gpt() + "--steps 1 --save " + folder_.path("nowhere/state"), kResourceMissing,
                 "nowhere/state");
  expect_refused(gpt() + "--policy offload --disk " + folder_.path("nowhere"), kResourceMissing,
                 "nowhere");
  expect_refused(gpt() + "--policy offload --window 0 --min-bytes 0 --disk-limit 64KiB --disk " +
                     folder_.path(""),
                 kResourceMissing, "");
}

TEST_F(ProgramTest, NoGpuIsSeven) {
  const Result result = test::ferry_train(gpt() + "--steps 1 --device cuda");
  if (result.code == kOk) GTEST_SKIP() << "there is a GPU";
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
