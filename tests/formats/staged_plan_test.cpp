#include "formats/staged_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;

StagedPlan sample() {
  return {.program = "gpt2",
          .program_digest = "0123456789abcdef",
          .hardware = "h100",
          .policy = "per-stage",
          .schedule = ScheduleKind::kOneForwardOneBackward,
          .devices = 2,
          .microbatches = 4,
          .options = {{"window_packs", 5}, {"bytes_min", -1}},
          .predicted = {1, 2, 3, 4},
          .stages = {{2, "begin", "h.0", StagePolicy::kCheckpointOffload},
                     {1, "h.\"1\"", "h.\"1\"", StagePolicy::kKeep}}};
}

// The sample's text with one piece of it replaced, and what the reader says to that.
std::string error(const std::string& piece, const std::string& instead) {
  std::string text = to_text(sample());
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), instead);
  return error_of([&] { parse_staged_plan(text, "p"); });
}

TEST(StagedPlanTest, ReadingWhatWasWrittenGivesTheSamePlan) {
  EXPECT_EQ(parse_staged_plan(to_text(sample()), "p"), sample());
  StagedPlan interleaved = sample();
  interleaved.schedule = ScheduleKind::kInterleaved;
  for (const PlannedStage& stage : sample().stages) interleaved.stages.push_back(stage);
  interleaved.options.clear();
  EXPECT_EQ(parse_staged_plan(to_text(interleaved), "p"), interleaved);
}

TEST(StagedPlanTest, TheFileIsForPeopleToo) {
  EXPECT_EQ(to_text(sample()), R"({
  "ferry": "pipeline plan",
  "schema": 1,
  "program": {"name":"gpt2","digest":"0123456789abcdef"},
  "hardware": "h100",
  "policy": "per-stage",
  "schedule": "1f1b",
  "devices": 2,
  "chunks": 4,
  "options": {"window_packs":5,"bytes_min":-1},
  "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "stages": [
    {"units":2,"first_unit":"begin","last_unit":"h.0","policy":"checkpoint+offload"},
    {"units":1,"first_unit":"h.\"1\"","last_unit":"h.\"1\"","policy":"keep"}
  ]
}
)");
}

TEST(StagedPlanTest, BadInputIsRefusedWithItsLine) {
  const std::string expected =
      "p:1: expected a plan of `ferry plan --stages`: {\"ferry\":\"pipeline plan\",\"schema\":1,…}";
  EXPECT_EQ(error("\"pipeline plan\"", "\"plan\""), expected + "; this one has no stages");
  EXPECT_EQ(error("\"pipeline plan\"", "\"program\""), expected);
  EXPECT_EQ(error("\"schema\": 1", "\"schema\": 2"), "p:3: expected \"schema\": 1");
  EXPECT_EQ(error("\"h100\"", "7"), "p:5: expected \"hardware\": a string");
  EXPECT_EQ(error("\"1f1b\"", "\"zigzag\""),
            "p:7: expected \"schedule\": \"gpipe\", \"1f1b\" or \"interleaved\"");
  EXPECT_EQ(error("\"policy\":\"keep\"", "\"policy\":\"mixed\""),
            "p:14: expected \"policy\": \"keep\", \"offload\", \"checkpoint\" or "
            "\"checkpoint+offload\"");
  EXPECT_NE(error("\"units\":2", "\"units\":0").find("p:13: expected \"units\": "),
            std::string::npos);
  EXPECT_NE(error("\"chunks\": 4,", "").find("chunks"), std::string::npos);
  EXPECT_EQ(error("\"stages\": [", "\"stages\": [],\"more\": ["),
            "p:12: expected \"stages\": a list of at least one stage");
}

// Nobody could carry these out.
TEST(StagedPlanTest, AScheduleThatIsNotForTheseStagesIsRefused) {
  EXPECT_EQ(error("\"devices\": 2", "\"devices\": 4"),
            "p:8: expected \"devices\": a divisor of the 2 stages");
  EXPECT_EQ(error("\"devices\": 2", "\"devices\": 1"),
            "p:7: the schedule is not for these stages: 1f1b: expected one stage on each device");
  std::string text = to_text(sample());
  text.replace(text.find("1f1b"), 4, "interleaved");
  text.replace(text.find("\"chunks\": 4"), 11, "\"chunks\": 3");
  EXPECT_EQ(error_of([&] { parse_staged_plan(text, "p"); }),
            "p:7: the schedule is not for these stages: interleaved: expected micro-batches that "
            "divide by the devices, found 3 for 2");
}

}  // namespace
}  // namespace ferry
