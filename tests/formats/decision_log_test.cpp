#include "formats/decision_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;

DecisionLog sample() {
  DecisionLog log;
  log.options.min_bytes = 7;
  log.options.reload_pool = ReloadPool::kCopyStream;
  log.decisions = {{DecisionKind::kPack, 1, 2, 4096},
                   {DecisionKind::kEvict, 1, 2, 4096},
                   {DecisionKind::kReturn, 3, 0, 0}};
  return log;
}

std::string text_of(const DecisionLog& log) {
  std::string text = decision_header(log.options);
  for (const Decision& decision : log.decisions) text += decision_line(decision);
  return text;
}

std::string error(const std::string& piece, const std::string& instead) {
  std::string text = text_of(sample());
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), instead);
  return error_of([&] { parse_decision_log(text, "run.jsonl"); });
}

TEST(DecisionLogTest, ADecisionIsALine) {
  EXPECT_EQ(decision_line(sample().decisions[0]),
            "{\"decision\":\"pack\",\"run\":1,\"pack\":2,\"bytes\":4096}\n");
}

TEST(DecisionLogTest, ReadingWhatWasWrittenGivesTheSameLog) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("decisions_" + std::to_string(getpid()));
  write_decision_log(path, sample());
  const DecisionLog read = read_decision_log(path);
  std::filesystem::remove(path);
  EXPECT_EQ(read.decisions, sample().decisions);
  EXPECT_EQ(read.lines, (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_EQ(read.options.min_bytes, 7);
  EXPECT_EQ(read.options.reload_pool, ReloadPool::kCopyStream);
  EXPECT_EQ(read.options.window_tensors, kUnlimited);
  EXPECT_TRUE(read.options.offload.empty());
}

TEST(DecisionLogTest, ARecomputeIsADecision) {
  DecisionLog log;
  log.decisions = {{DecisionKind::kRecompute, 2, 5, 0}};
  const std::string text = text_of(log);
  EXPECT_NE(text.find("\n{\"decision\":\"recompute\",\"run\":2,\"pack\":5,\"bytes\":0}\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_decision_log(text, "run.jsonl").decisions, log.decisions);
}

TEST(DecisionLogTest, APlansChoicesAreCarried) {
  using Choices = std::vector<bool>;
  const auto carried = [](const Choices& choices) {
    CoreOptions options;
    options.offload = choices;
    return parse_decision_log(decision_header(options), "run.jsonl").options.offload;
  };
  EXPECT_EQ(carried({false, true, true}), (Choices{false, true, true}));
  EXPECT_EQ(carried({true, false, false}), Choices{true});  // past the end: kept
  EXPECT_EQ(carried({false, false}), Choices{false});       // nothing moves; empty would mean all
}

TEST(DecisionLogTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error("decisions", "plan"), "run.jsonl:1: expected \"ferry\": \"decisions\"");
  EXPECT_EQ(error("\"schema\":1", "\"schema\":2"), "run.jsonl:1: expected \"schema\": 1");
  EXPECT_EQ(error("\"bytes_min\"", "\"bytes_most\""),
            "run.jsonl:1: expected \"bytes_min\": an option of the offloader");
  EXPECT_EQ(error("\"hold_bytes\":", "\"hold_bytes\":-"),
            "run.jsonl:1: hold_bytes should be at least 0 but is -536870912");
  EXPECT_EQ(error("\"evict\"", "\"evicts\""),
            "run.jsonl:3: expected \"decision\": pack, evict, prefetch, unpack, release, return or "
            "recompute");
  EXPECT_EQ(error("\"run\":3", "\"run\":-3").rfind("run.jsonl:4: expected \"run\"", 0), 0u);
  EXPECT_EQ(error("\"pack\":0,", ""), "run.jsonl:4: expected a key \"pack\"");
  EXPECT_EQ(error_of([] { parse_decision_log("", "run.jsonl"); }),
            "run.jsonl:1: expected the header of a decision log");
}

TEST(DecisionLogTest, MovesAscend) {
  std::string text = decision_header({});
  text.insert(text.size() - 2, ",\"moves\":[2,1]");
  EXPECT_EQ(error_of([&] { parse_decision_log(text, "run.jsonl"); }),
            "run.jsonl:1: expected \"moves\": numbers that ascend");
}

}  // namespace
}  // namespace ferry
