#include "formats/plan_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <utility>

#include "formats/plan_options.h"
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
  EXPECT_EQ(error("\"plan\"", "\"pipeline plan\""),
            "plan.json:1: expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}; this is a "
            "pipeline's, for `ferry train --stages`");
  EXPECT_EQ(error("\"schema\": 1", "\"schema\": 2"), "plan.json:3: expected \"schema\": 1");
  EXPECT_EQ(error("\"digest\"", "\"digests\""), "plan.json:4: expected a key \"digest\"");
  EXPECT_EQ(error("\"rtx4090\"", "4090"), "plan.json:5: expected \"hardware\": a string");
  EXPECT_EQ(error("packs\":5", "packs\":0.5").substr(0, 38),
            "plan.json:7: expected \"window_packs\": ");
  EXPECT_EQ(error("\"host\":3", "\"host\":-3"),
            "plan.json:8: expected \"host\": an integer from 0");
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

// What stands behind a byte 0 was not looked at, once: the tail of a file that a crash left half
// written passed for the end.
TEST(PlanFileTest, NothingIsBehindAByte0) {
  const std::string zeros(2, '\0');
  EXPECT_EQ(error_of([&] { parse_plan(to_text(sample()) + zeros + "tail", "plan.json"); }),
            "plan.json:14: expected JSON: expected the end of the line at column 1");
  EXPECT_EQ(error("\"schema\"", zeros),
            "plan.json:3: expected JSON: expected a key in double quotes at column 3");
}

// The first of two segments is recomputed; its input moves, and what it saves is recomputed, kept
// or moved.
Plan segmented() {
  const Layout layout{DType::kBF16, {2, 3}, {3, 1}, 0};
  return {.program = "gpt2",
          .program_digest = "0123456789abcdef",
          .hardware = "rtx4090",
          .policy = "mixed",
          .options = plan_options(CoreOptions()),
          .predicted = {1, 2, 3, 4},
          .segments = {{"h.0", true}, {"\"h.1\"", false}},
          .entries = {{0, "Mm", layout, 0, PlanChoice::kKeep},
                      {1, "checkpoint", layout, 1, PlanChoice::kOffload},
                      {0, "Mm", layout, 1, PlanChoice::kRecompute, 0},
                      {1, "Mm", layout, 2, PlanChoice::kKeep, 0},
                      {2, "Mm", layout, 3, PlanChoice::kOffload, 0},
                      {2, "Mm", layout, 4, PlanChoice::kOffload}}};
}

std::string segmented_error(const std::string& piece, const std::string& instead) {
  std::string text = to_text(segmented());
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), instead);
  return error_of([&] { parse_plan(text, "plan.json"); });
}

TEST(PlanFileTest, SegmentsRoundTrip) {
  EXPECT_EQ(parse_plan(to_text(segmented()), "plan.json"), segmented());
  const std::string text = to_text(segmented());
  EXPECT_NE(text.find(R"(  "segments": [
    {"name":"h.0","recompute":true},
    {"name":"\"h.1\"","recompute":false}
  ],
  "entries": [
)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"group\":1,\"decision\":\"recompute\",\"segment\":0},\n"),
            std::string::npos)
      << text;
}

TEST(PlanFileTest, APlanOfSegmentsThatAreAllKeptRoundTrips) {
  Plan plan = sample();
  plan.segments = {{"a", false}, {"", false}};
  EXPECT_EQ(parse_plan(to_text(plan), "plan.json"), plan);
}

TEST(PlanFileTest, BadSegmentsAreRefusedWithTheirLine) {
  EXPECT_EQ(segmented_error("\"name\":\"h.0\",", ""), "plan.json:10: expected a key \"name\"");
  EXPECT_EQ(segmented_error(",\"recompute\":true", ""),
            "plan.json:10: expected a key \"recompute\"");
  EXPECT_EQ(segmented_error("\"recompute\":true", "\"recompute\":1"),
            "plan.json:10: expected \"recompute\": true or false");
  Plan none = segmented();
  none.segments.clear();
  EXPECT_EQ(error_of([&] { parse_plan(to_text(none), "plan.json"); }),
            "plan.json:12: expected \"segment\": a segment of the plan that is recomputed");
}

TEST(PlanFileTest, BadEntriesOfSegmentsAreRefusedWithTheirLine) {
  const std::string first = "\"decision\":\"recompute\",\"segment\":0";
  const auto line16 = [&](const std::string& instead) { return segmented_error(first, instead); };
  const std::string no_segment =
      "plan.json:16: expected \"segment\": a segment of the plan that is recomputed";
  EXPECT_EQ(line16("\"decision\":\"recompute\",\"segment\":1"), no_segment);
  EXPECT_EQ(line16("\"decision\":\"recompute\",\"segment\":2"), no_segment);
  EXPECT_EQ(line16("\"decision\":\"recompute\",\"segment\":-1").substr(0, 33),
            "plan.json:16: expected \"segment\":");
  EXPECT_EQ(line16("\"decision\":\"forget\",\"segment\":0"),
            "plan.json:16: expected \"decision\": \"keep\", \"offload\" or \"recompute\"");
  // Outside of segments nothing is recomputed: it would be the forward's third pack, too.
  EXPECT_EQ(segmented_error("\"decision\":\"offload\"}", "\"decision\":\"recompute\"}"),
            "plan.json:15: expected \"decision\": \"keep\" or \"offload\"");
  EXPECT_EQ(segmented_error("{\"pack\":1,\"op\":\"Mm\"", "{\"pack\":2,\"op\":\"Mm\""),
            "plan.json:17: expected \"pack\": 1: every pack has its entry");
  EXPECT_EQ(segmented_error("\"group\":2", "\"group\":0"), "");  // both are kept
  EXPECT_EQ(segmented_error("\"group\":2", "\"group\":1"),
            "plan.json:17: expected \"decision\": one decision for all of group 1");
}

// Two spans; what the first replay begins from moves.
Plan spanned() {
  const Layout layout{DType::kBF16, {2, 3}, {3, 1}, 0};
  Plan plan = sample();
  plan.options = plan_options(CoreOptions());
  plan.spans = {{.first = 1, .last = 3, .first_op = "norm", .last_op = "mm", .keep = {2, 3}},
                {.first = 4, .last = 4, .first_op = "gelu", .last_op = "gelu"}};
  plan.entries = {{0, "Mm", layout, 0, PlanChoice::kKeep},
                  {1, "replay", layout, 1, PlanChoice::kOffload}};
  return plan;
}

TEST(PlanFileTest, SpansRoundTrip) {
  const std::string text = to_text(spanned());
  EXPECT_EQ(parse_plan(text, "plan.json"), spanned());
  EXPECT_NE(text.find(R"(  "spans": [
    {"first":1,"first_op":"norm","last":3,"last_op":"mm","keep":[2,3]},
    {"first":4,"first_op":"gelu","last":4,"last_op":"gelu","keep":[]}
  ],
  "entries": [
)"),
            std::string::npos)
      << text;
}

TEST(PlanFileTest, BadSpansAreRefusedWithTheirLine) {
  const auto error = [](const std::string& piece, const std::string& instead) {
    std::string text = to_text(spanned());
    const std::size_t at = text.find(piece);
    EXPECT_NE(at, std::string::npos) << piece;
    text.replace(at, piece.size(), instead);
    return error_of([&] { parse_plan(text, "plan.json"); });
  };
  EXPECT_EQ(error("\"first\":1,", ""), "plan.json:10: expected a key \"first\"");
  EXPECT_EQ(error(",\"keep\":[]", ""), "plan.json:11: expected a key \"keep\"");
  const std::string after =
      "plan.json:11: expected \"first\": an operator after the span before it";
  EXPECT_EQ(error("\"first\":4", "\"first\":3"), after);
  EXPECT_EQ(error("\"first\":4", "\"first\":0"), after);
  EXPECT_EQ(error("\"last\":3", "\"last\":0"),
            "plan.json:10: expected \"last\": no operator before \"first\"");
  const std::string keep = "plan.json:10: expected \"keep\": operators of the span, in order";
  for (const char* bad : {"[3,2]", "[2,2]", "[0]", "[2,4]"}) EXPECT_EQ(error("[2,3]", bad), keep);
}

// Two in the first span, one of them with another in it.
Plan nested() {
  Plan plan = spanned();
  plan.spans[0].inner = {{.first = 1, .last = 2, .first_op = "norm", .last_op = "gelu"},
                         {.first = 3, .last = 3, .first_op = "mm", .last_op = "mm", .keep = {3}}};
  plan.spans[0].inner[0].inner = {{.first = 2, .last = 2, .first_op = "gelu", .last_op = "gelu"}};
  return plan;
}

TEST(PlanFileTest, NestedSpansRoundTrip) {
  const std::string text = to_text(nested());
  EXPECT_EQ(parse_plan(text, "plan.json"), nested());
  EXPECT_NE(parse_plan(text, "plan.json"), spanned());
  EXPECT_NE(text.find(R"("keep":[2,3],"inner":[{"first":1,"first_op":"norm","last":2,)"
                      R"("last_op":"gelu","keep":[],"inner":[{"first":2,)"),
            std::string::npos)
      << text;
}

TEST(PlanFileTest, BadInnerSpansAreRefusedWithTheirLine) {
  const auto error = [](const std::function<void(PlanSpan&)>& change) {
    Plan plan = nested();
    change(plan.spans[0]);
    return error_of([&] { parse_plan(to_text(plan), "plan.json"); });
  };
  const std::string within =
      "plan.json:10: expected \"inner\": spans within the one around them, in order";
  EXPECT_EQ(error([](PlanSpan& span) { span.inner[0].first = 0; }), within);
  EXPECT_EQ(error([](PlanSpan& span) { span.inner[1].last = 4; }), within);
  EXPECT_EQ(error([](PlanSpan& span) { std::swap(span.inner[0], span.inner[1]); }), within);
  EXPECT_EQ(error([](PlanSpan& span) { span.inner[0].inner[0].last = 3; }), within);
  EXPECT_EQ(error([](PlanSpan& span) { span.inner[1].keep = {2}; }),
            "plan.json:10: expected \"keep\": operators of the span, in order");
  const auto levels = [&](std::size_t more) {
    return error([more](PlanSpan& span) {
      span.inner.clear();
      for (std::size_t level = 0; level < more; ++level) {
        PlanSpan around = span;
        around.inner = {std::move(span)};
        span = std::move(around);
      }
    });
  };
  EXPECT_EQ(levels(kSpanDepth - 1), "");
  EXPECT_EQ(levels(kSpanDepth), "plan.json:10: expected \"inner\": at most 64 levels of spans");
}

TEST(PlanFileTest, SpansBesideSegmentsAreRefused) {
  Plan plan = spanned();
  plan.segments = {{"h.0", false}};
  EXPECT_EQ(error_of([&] { parse_plan(to_text(plan), "plan.json"); }),
            "plan.json:13: a plan has spans or segments, not both");
}

TEST(PlanOptionsTest, TheOffloadersChoicesAreTheForwardsAndWhatSegmentsPassOn) {
  const CoreOptions options = planned_options(segmented());
  EXPECT_EQ(options.offload, (std::vector<bool>{false, true, true, true, false}));
  EXPECT_TRUE(to_options(segmented()).has_value());
  Plan still = segmented();
  for (PlanEntry& entry : still.entries) {
    if (entry.decision == PlanChoice::kOffload) entry.decision = PlanChoice::kKeep;
  }
  EXPECT_EQ(planned_options(still).offload, (std::vector<bool>{false, false, false, false}));
  EXPECT_FALSE(to_options(still).has_value());
}

TEST(PlanOptionsTest, ASegmentsChoicesAreByItsOwnPacks) {
  const auto plan = planned_segments(segmented());
  EXPECT_TRUE(plan->checkpoint);
  EXPECT_FALSE(plan->unlisted);  // what the plan does not list just runs
  ASSERT_EQ(plan->segments.size(), 2u);
  const SegmentPlan& first = plan->segments[0];
  EXPECT_TRUE(first.checkpoint);
  EXPECT_FALSE(first.unlisted);
  EXPECT_EQ(first.packs, 3u);
  EXPECT_EQ(first.choices, (std::vector<SavedChoice>{SavedChoice::kRecompute, SavedChoice::kKeep,
                                                     SavedChoice::kOffload}));
  EXPECT_FALSE(plan->segments[1].checkpoint);
  EXPECT_EQ(plan->segments[1].packs, std::nullopt);
  EXPECT_TRUE(planned_segments(sample())->segments.empty());
}

TEST(PlanOptionsTest, AGapIsRefusedByFrame) {
  const auto refusal = [](std::size_t entry, std::uint64_t pack) -> std::string {
    Plan plan = segmented();
    plan.entries[entry].pack = pack;
    try {
      planned_options(plan);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(3, 3), "entry 3 of the plan is for pack 3 instead of 1");
  EXPECT_EQ(refusal(5, 5), "entry 5 of the plan is for pack 5 instead of 2");
}

TEST(PlanFileTest, ATruncatedFileIsRefused) {
  const std::string text = to_text(sample());
  for (std::size_t cut = 0; cut + 2 < text.size(); ++cut) {
    EXPECT_NE(error_of([&] { parse_plan(text.substr(0, cut), "plan.json"); }), "") << cut;
  }
}

// A plan that was made for another allocator than the usual one says so, and says it once.
TEST(PlanFileTest, TheAllocatorRoundTrips) {
  Plan plan = sample();
  plan.alloc_conf = "expandable_segments:True";
  const std::string text = to_text(plan);
  EXPECT_NE(text.find("\n  \"alloc_conf\": \"expandable_segments:True\",\n"), std::string::npos);
  EXPECT_EQ(parse_plan(text, "plan.json"), plan);
  EXPECT_EQ(to_text(sample()).find("alloc_conf"), std::string::npos);
}

TEST(PlanFileTest, AnAllocatorsOptionsThatAreNoneAreRefusedWithTheirLine) {
  const std::string known = "\"policy\": \"offload-prefix\",\n";
  for (const char* wrong : {"\"expandable:True\"", "\"expandable_segments\"", "1"}) {
    const std::string said = error(known, known + "  \"alloc_conf\": " + wrong + ",\n");
    EXPECT_EQ(said.substr(0, 12), "plan.json:7:") << said;
    EXPECT_NE(said.find("\"alloc_conf\""), std::string::npos) << said;
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
