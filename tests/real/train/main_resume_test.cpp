// A training may be saved and resumed, stopped by a signal, or killed between two saves.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "formats/text_file.h"
#include "tests/real/train/program.h"

namespace ferry::real::train {
namespace {

using test::Child;
using test::lines;
using test::losses;
using test::ProgramTest;
using test::Result;

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

TEST_F(ProgramTest, AStateIsOfItsShapeAndDtype) {
  const std::string state = folder_.path("state");
  for (const std::string& model : {gpt(), llama()}) {
    const std::string bf16 = model + "--dtype bf16 --vocabulary 300 --json ";
    const std::vector<std::string> whole = losses(test::ferry_train(bf16 + "--steps 4"));
    losses(test::ferry_train(bf16 + "--steps 2 --save " + state));
    const std::string resume = "--steps 4 --resume " + state;
    EXPECT_EQ(losses(test::ferry_train(bf16 + resume + " --policy offload --window 0")),
              std::vector<std::string>(whole.begin() + 2, whole.end()));
    expect_refused(model + "--vocabulary 300 " + resume, kUsage, "--dtype");
    expect_refused(model + "--dtype bf16 " + resume, kUsage, "--vocabulary");
  }
  // Where a shape is the default's, nothing of it is in the state: what was saved before there was
  // the option still fits.
  losses(test::ferry_train(gpt() + "--json --steps 1 --save " + state));
  const std::string text = read_file(state);
  const std::string header = text.substr(0, text.find('\n'));
  EXPECT_EQ(header.find("--dtype"), std::string::npos);
  EXPECT_EQ(header.find("--vocabulary"), std::string::npos);
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

}  // namespace
}  // namespace ferry::real::train
