// A survey lists the saved tensors of a forward.
#include "plan/survey.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/layout.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

// Hooks around spans see the saved tensors that no span recomputes, and the inputs of each replay.
TEST(SurveyTest, IsOfWhatSpansDoNotMakeAgain) {
  // Five layers; each node saves the layer's input, and so the tensor before it.
  const Program program = test::chain({.layers = 5, .elements = 1 << 18, .weight_elements = 64});
  const Hardware card = test::tiny_hardware();
  const Survey plain = survey(program, card);
  const Survey ours = survey(program, card, std::vector<PlanSpan>{{.first = 1, .last = 3}});
  std::vector<std::string> nodes;
  for (const PackedTensor& pack : ours.packs) nodes.push_back(pack.node);
  // The program's input; the span's input, saved by its first node; the replay's inputs, which are
  // the span's input and two weights; the result of operator 3.
  EXPECT_EQ(nodes, (std::vector<std::string>{"LayerBackward", "LayerBackward", "replay", "replay",
                                             "replay", "LayerBackward", "LossBackward"}));
  EXPECT_EQ(plain.packs.size(), 6u);
}

TEST(SurveyTest, SeesEveryPackOfTheFirstForward) {
  const std::vector<PackedTensor> packs =
      survey(test::chain({.layers = 2}), test::tiny_hardware()).packs;
  ASSERT_EQ(packs.size(), 3u);
  EXPECT_EQ(packs[0].node, "LayerBackward");
  EXPECT_EQ(packs[2].node, "LossBackward");
  EXPECT_TRUE(packs[0].global);
  EXPECT_FALSE(packs[1].global);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(packs[i].group, i);
    EXPECT_EQ(packs[i].storage_bytes, 2048);
    EXPECT_EQ(packs[i].layout, contiguous_layout(DType::kBF16, {1024}));
  }
  Program twice = test::chain({.layers = 2});
  Code& main = twice.codes[twice.main];
  const std::vector<Statement> step = main.statements;
  main.statements.insert(main.statements.end(), step.begin(), step.end());
  EXPECT_EQ(survey(twice, test::tiny_hardware()).packs.size(), 3u);
}

}  // namespace
}  // namespace ferry::plan
