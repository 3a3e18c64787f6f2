// The tests of the program share three small trainings, and read what it prints of their steps.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "real/train/exit_code.h"
#include "tests/real/train/child.h"

namespace ferry::real::train::test {

class ProgramTest : public ::testing::Test {
 protected:
  // A GPT with dropout, a Llama, and a ResNet: a few milliseconds a step.
  std::string gpt() const {
    return "gpt --layers 2 --width 32 --heads 2 --context 32 --batch 2 --dropout 0.1 --threads 1 "
           "--data " +
           folder_.text() + " ";
  }
  std::string llama() const {
    return "llama --layers 2 --width 32 --heads 4 --kv-heads 2 --hidden 48 --context 32 --batch 2 "
           "--threads 1 --data " +
           folder_.text() + " ";
  }
  static std::string resnet() {
    return "resnet --layers 1 --width 8 --batch 4 --images 20 --threads 1 ";
  }

  void expect_refused(const std::string& arguments, int code, const std::string& message) const {
    const Result result = ferry_train(arguments);
    EXPECT_EQ(result.code, code) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with("ferry: ")) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << arguments << "\n" << result.err;
  }

  Folder folder_;
};

inline std::vector<nlohmann::json> lines(const std::string& text) {
  std::vector<nlohmann::json> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

// As printed: equal texts are equal bits.
inline std::vector<std::string> losses(const Result& result) {
  EXPECT_EQ(result.code, kOk) << result.err;
  std::vector<std::string> all;
  for (const auto& line : lines(result.out)) all.push_back(line["loss"].dump());
  return all;
}

}  // namespace ferry::real::train::test
