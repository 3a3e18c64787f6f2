#include "formats/plan_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;

Plan sample() {
  return {.program = "gpt2",
          .program_digest = "0123456789abcdef",
          .hardware = "rtx4090",
          .policy = "offload-prefix",
          .options = {{"window_packs", 5}, {"bytes_min", -1}},
          .predicted = {1, 2, 3, 4},
          .entries = {{0, "MmBackward0", {DType::kBF16, {2, 3}, {1, 2}, 0}, 7, PlanChoice::kKeep},
                      {1, "\"odd\"", {DType::kF32, {}, {}, 0}, 8, PlanChoice::kOffload}}};
}

// The sample's text with one piece of it replaced, and what the reader says to that.
std::string error(const std::string& piece, const std::string& instead) {
  std::string text = to_text(sample());
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), instead);
  return error_of([&] { parse_plan(text, "plan.json"); });
}

TEST(PlanFileTest, ReadingWhatWasWrittenGivesTheSamePlan) {
  EXPECT_EQ(parse_plan(to_text(sample()), "plan.json"), sample());
  EXPECT_EQ(parse_plan(to_text(Plan{}), "plan.json"), Plan{});
}

TEST(PlanFileTest, TheFileIsForPeopleToo) {
  EXPECT_EQ(to_text(sample()), R"({
  "ferry": "plan",
  "schema": 1,
  "program": {"name":"gpt2","digest":"0123456789abcdef"},
  "hardware": "rtx4090",
  "policy": "offload-prefix",
  "options": {"window_packs":5,"bytes_min":-1},
  "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "entries": [
    {"pack":0,"op":"MmBackward0","dtype":"bf16","shape":[2,3],"strides":[1,2],"group":7,"decision":"keep"},
    {"pack":1,"op":"\"odd\"","dtype":"f32","shape":[],"strides":[],"group":8,"decision":"offload"}
  ]
}
)");
}

TEST(PlanFileTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error("\"plan\"", "\"program\""),
            "plan.json:1: expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}");
  EXPECT_EQ(error("\"schema\": 1", "\"schema\": 2"), "plan.json:3: expected \"schema\": 1");
  EXPECT_EQ(error("\"digest\"", "\"digests\""), "plan.json:4: expected a key \"digest\"");
  EXPECT_EQ(error("\"rtx4090\"", "4090"), "plan.json:5: expected \"hardware\": a string");
  EXPECT_EQ(error("packs\":5", "packs\":0.5").substr(0, 38),
            "plan.json:7: expected \"window_packs\": ");
  EXPECT_EQ(error("\"host\":3", "\"host\":-3"),
            "plan.json:8: expected \"host\": an integer from 0");
  EXPECT_EQ(error("\"host\":3", "\"host\":3,\"h\":3"), "plan.json:8: unknown key \"h\"");
  EXPECT_EQ(error("\"keep\"", "\"recycle\""),
            "plan.json:10: expected \"decision\": \"keep\" or \"offload\"");
  EXPECT_EQ(error("\"group\":8", "\"group\":7"),
            "plan.json:11: expected \"decision\": one decision for all of group 7");
  EXPECT_EQ(error("\"pack\":1", "\"pack\":2"),
            "plan.json:11: expected \"pack\": 1: every pack has its entry");
  EXPECT_EQ(error(",\"strides\":[]", ""), "plan.json:11: expected a key \"strides\"");
  EXPECT_EQ(error("\"policy\": ", "\"hardware\": "),
            "plan.json:6: key \"hardware\" is there twice");
  EXPECT_EQ(error("\"policy\"", "\"police\""), "plan.json:1: expected a key \"policy\"");
}

TEST(PlanFileTest, ATruncatedFileIsRefused) {
  const std::string text = to_text(sample());
  for (std::size_t cut = 0; cut + 2 < text.size(); ++cut) {
    EXPECT_NE(error_of([&] { parse_plan(text.substr(0, cut), "plan.json"); }), "") << cut;
  }
}

TEST(PlanFileTest, AFileRoundTrips) {
  const auto path = std::filesystem::path(::testing::TempDir()) /
                    ("ferry_plan_" + std::to_string(::getpid()) + ".json");
  write_plan(path, sample());
  EXPECT_EQ(read_plan(path), sample());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ferry
