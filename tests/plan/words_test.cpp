#include "plan/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/builder.h"

namespace ferry::plan {
namespace {

// Returns segments with two saves each, of one storage each, and with one input.
Survey segments(std::size_t count) {
  Survey survey;
  for (std::size_t s = 0; s < count; ++s) {
    SurveyedSegment segment;
    segment.first = survey.packs.size();
    for (int i = 0; i < 2; ++i) {
      PackedTensor pack;
      pack.group = survey.packs.size();
      survey.packs.push_back(pack);
    }
    segment.end = survey.packs.size();
    PackedTensor input;
    input.group = 100 + s;
    segment.inputs.push_back(input);
    survey.segments.push_back(segment);
  }
  return survey;
}

void recompute(Mix& mix, std::size_t segment, std::size_t saves) {
  mix.recompute[segment] = true;
  for (std::size_t p = 0; p < saves; ++p) mix.packs[2 * segment + p] = PlanChoice::kRecompute;
}

TEST(WordsTest, NothingIsSaidOfKeepingAll) {
  const Survey survey = segments(1);
  EXPECT_EQ(in_words(keep_all(survey), {"h.0"}, survey), "");
}

// Without ranges, thirty-two blocks of two modules would give sixty-four names.
TEST(WordsTest, SegmentsThatFollowOneAnotherAreOneRange) {
  const Survey survey = segments(6);
  Mix mix = keep_all(survey);
  for (std::size_t s = 0; s < 6; ++s) recompute(mix, s, 2);
  EXPECT_EQ(in_words(mix, {"h.0.a", "h.0.b", "h.1.a", "h.1.b", "h.2.a", "norm"}, survey),
            "recompute h.{0-2}.a (2 of 2 saves), h.{0-1}.b (2 of 2 saves), norm (2 of 2 saves); "
            "keep the rest");
}

TEST(WordsTest, AGapOrAnotherPartEndsARange) {
  const Survey survey = segments(4);
  Mix mix = keep_all(survey);
  recompute(mix, 0, 2);
  recompute(mix, 2, 2);
  recompute(mix, 3, 1);
  EXPECT_EQ(in_words(mix, {"h.8", "h.9", "h.10", "h.11"}, survey),
            "recompute h.8 (2 of 2 saves), h.10 (2 of 2 saves), h.11 (1 of 2 saves); "
            "keep the rest");
}

// A segment's inputs are saved only if it is recomputed.
TEST(WordsTest, StoragesThatMoveAreCountedOnce) {
  const Survey survey = segments(2);
  Mix mix = keep_all(survey);
  mix.packs[2] = PlanChoice::kOffload;
  mix.input_moves[0][0] = mix.input_moves[1][0] = true;
  EXPECT_EQ(in_words(mix, {"a", "b"}, survey), "offload 1 storage; keep the rest");
  recompute(mix, 0, 1);
  EXPECT_EQ(in_words(mix, {"a", ""}, survey),
            "recompute a (1 of 2 saves); offload 2 storages; keep the rest");
}

// The forward: enter h.0; a, b; leave; enter h.1; a, b; leave; c.
Program blocks() {
  Builder b;
  const TypeId type = b.type({4});
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  Slot x = b.op(forward, "begin", {}, type);
  for (const char* block : {"h.0", "h.1"}) {
    b.add(forward, Module{block, true});
    b.add(forward, Module{std::string(block) + ".mlp", true});
    x = b.op(forward, "aten.a", {x}, type);
    b.add(forward, Module{std::string(block) + ".mlp", false});
    x = b.op(forward, "aten.b", {x}, type);
    b.add(forward, Module{block, false});
  }
  b.result(forward, b.op(forward, "aten.c", {x}, type));
  b.add(0, Call{forward, {}, {b.slot(0)}});
  return b.program;
}

TEST(WordsTest, SpansAreToldByBlock) {
  const Survey survey;
  const auto words = [&](const std::vector<PlanSpan>& spans) {
    return in_words(described(blocks(), spans), keep_all(survey), survey);
  };
  EXPECT_EQ(words({{1, 2}, {3, 4}}), "recompute the operators a, b of h.{0-1}; keep the rest");
  EXPECT_EQ(words({{1, 4}}), words({{1, 2}, {3, 4}})) << "a span may go over blocks";
  EXPECT_EQ(words({{.first = 1, .last = 2, .keep = {2}}, {3, 5}}),
            "recompute the operators a of h.0; the operators a, b of h.1; the operators c of the "
            "forward; keep the rest");
  PlanSpan outer{.first = 1, .last = 4};
  outer.inner = {{.first = 1, .last = 2, .keep = {2}}, {.first = 3, .last = 4}};
  EXPECT_EQ(words({outer}),
            "recompute the operators a, b of h.{0-1} (up to 2 times); keep the rest");
  outer.inner = {{.first = 1, .last = 2, .keep = {1, 2}}};
  EXPECT_EQ(words({outer}), "recompute the operators a, b of h.{0-1}; keep the rest")
      << "in the outer one alone";
}

}  // namespace
}  // namespace ferry::plan
