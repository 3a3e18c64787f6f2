// `ferry plan --times`: a table of measured kernel times in place of the roofline's.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/kernel_times.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

// A table of the chain's ops, a millisecond each.
class PlanTimesTest : public PlanFolder {
 protected:
  PlanTimesTest() {
    Program program = test::chain({});
    TimeSamples samples;
    each_op(program, [this](Op& op, const OpSignature&) {
      op.measured_ns = 1'000'000;
      ++ops_;
    });
    samples.add(program);
    table_ = {.device = "tiny", .about = {}, .times = samples.times()};
    write("chain.times.jsonl", to_text(table_));
  }

  std::int64_t ops_ = 0;
  TimesTable table_;
};

TEST_F(PlanTimesTest, MeasuredTimesAreTakenAndCounted) {
  const std::string command = " chain.jsonl --card tiny.toml --policy keep ";
  const Result table = ferry("plan" + command + "--times chain.times.jsonl");
  ASSERT_EQ(table.code, kOk) << table.err;
  const std::string count = std::to_string(ops_);
  EXPECT_NE(
      table.out.find("times: " + count + " of " + count + " ops measured (chain.times.jsonl)\n"),
      std::string::npos)
      << table.out;
  const auto timed =
      nlohmann::json::parse(ferry("simulate" + command + "--json --times chain.times.jsonl").out);
  const auto plain = nlohmann::json::parse(ferry("simulate" + command + "--json").out);
  EXPECT_EQ(plain["times"], nullptr);
  EXPECT_EQ(timed["times"]["measured"], ops_);
  EXPECT_EQ(timed["times"]["scaled"], 0);
  EXPECT_NE(timed["rows"][0]["compute_ns"], plain["rows"][0]["compute_ns"]);
  EXPECT_GE(timed["rows"][0]["compute_ns"], ops_ * 1'000'000);
  EXPECT_EQ(timed["rows"][0]["device_peak_bytes"], plain["rows"][0]["device_peak_bytes"]);
}

// A profile of another model, once, ended in an unqualified "Use keep".
TEST_F(PlanTimesTest, TheAnswerSaysThatNothingWasMeasured) {
  const std::string command = "plan chain.jsonl --card tiny.toml --policy keep --times ";
  EXPECT_EQ(ferry(command + "chain.times.jsonl").out.find("measured:"), std::string::npos);
  TimesTable other;
  other.device = "tiny";
  write("other.times.jsonl", to_text(other));
  const std::string out = ferry(command + "other.times.jsonl").out;
  EXPECT_NE(out.find(" None of these times was measured: --times has none of the " +
                     std::to_string(ops_) +
                     " operators with these arguments; the times are estimated from the rates of "
                     "tiny."),
            std::string::npos)
      << out;
  other.times = {*table_.times.begin()};
  write("some.times.jsonl", to_text(other));
  const std::string some = ferry(command + "some.times.jsonl").out;
  EXPECT_NE(some.find(" of the " + std::to_string(ops_) + " operators' times were measured"),
            std::string::npos)
      << some;
}

TEST_F(PlanTimesTest, APlanMadeWithTimesIsTheProgramsAllTheSame) {
  const std::string command = " chain.jsonl --card tiny.toml ";
  ASSERT_EQ(ferry("plan" + command + "--policy offload --times chain.times.jsonl -o p.json").code,
            kOk);
  EXPECT_EQ(ferry("simulate" + command + "--plan p.json").code, kOk);
  EXPECT_EQ(ferry("simulate" + command + "--plan p.json --times chain.times.jsonl").code, kOk);
}

TEST_F(PlanTimesTest, APipelineTakesThem) {
  const Result result = ferry(
      "plan blocks.jsonl --card tiny.toml --stages 1 --policy keep --times "
      "chain.times.jsonl");
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_NE(result.out.find("(chain.times.jsonl)"), std::string::npos) << result.out;
}

// Of a profile: each op's call, with a kernel of 1.5 ms.
TEST_F(PlanTimesTest, AProfileOfPyTorchsIsTaken) {
  Program program = test::chain({});
  nlohmann::json profile = {{"schemaVersion", 1}, {"traceEvents", nlohmann::json::array()}};
  int id = 0;
  each_op(program, [&](Op& op, const OpSignature& signature) {
    nlohmann::json arguments = {{"External id", ++id},
                                {"Input Dims", nlohmann::json::array()},
                                {"Input type", nlohmann::json::array()}};
    for (const auto& in : signature.in) {
      if (!in) return;
      arguments["Input Dims"].push_back(in->shape);
      arguments["Input type"].push_back(in->dtype == DType::kF32 ? "float" : "c10::BFloat16");
    }
    profile["traceEvents"].push_back({{"ph", "X"},
                                      {"cat", "cpu_op"},
                                      {"name", op.name},
                                      {"pid", 1},
                                      {"tid", 1},
                                      {"ts", 10 * id},
                                      {"dur", 1.25},
                                      {"args", arguments}});
    profile["traceEvents"].push_back({{"ph", "X"},
                                      {"cat", "kernel"},
                                      {"name", "k"},
                                      {"dur", 1500.0},
                                      {"args", {{"External id", id}}}});
  });
  write("step.json", profile.dump(1));
  const auto timed = nlohmann::json::parse(
      ferry("simulate chain.jsonl --card tiny.toml --policy keep --json --times step.json").out);
  EXPECT_GT(timed["times"]["measured"], 0);
  EXPECT_GE(timed["rows"][0]["compute_ns"],
            timed["times"]["measured"].get<std::int64_t>() * 1'500'000);
}

TEST_F(PlanTimesTest, ABadTableIsRefused) {
  const std::string command = "plan chain.jsonl --card tiny.toml --times ";
  expect_refused(command + "none.jsonl", "none.jsonl: cannot read");
  expect_refused(command + "chain.jsonl",
                 "chain.jsonl: expected a table of kernel times, and this is a program");
  write("none.json", R"({"traceEvents":[]})");
  expect_refused(command + "none.json", "none.json: expected \"traceEvents\" with operators");
  std::string cut = to_text(table_);
  write("cut.jsonl", cut.substr(0, cut.size() - 5));
  expect_refused(command + "cut.jsonl",
                 "cut.jsonl:" + std::to_string(table_.times.size() + 1) + ": ");
}

}  // namespace
}  // namespace ferry::cli
