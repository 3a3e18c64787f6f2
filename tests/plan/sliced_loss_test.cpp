// A sliced loss: tensors of the logits' shape have fewer rows, and nothing else changes.
#include "plan/sliced_loss.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <variant>

#include "formats/layout.h"
#include "formats/program_file.h"
#include "plan/planner.h"
#include "scenarios/hardware.h"
#include "scenarios/programs.h"

namespace ferry::plan {
namespace {

TEST(SlicedLossTest, TheLossIsFoundByItsLogSoftmax) {
  const auto loss = loss_of(load_program(find_program("gpt2")));
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->op, "aten._log_softmax");
  EXPECT_EQ(loss->rows, 8192);
  EXPECT_EQ(loss->classes, 50257);
  EXPECT_FALSE(loss_of(load_program(find_program("qwen3-8b"))));  // the last token's logits
}

// The head's weight and its gradient also have a dimension of classes, but do not change.
TEST(SlicedLossTest, TensorsOfTheLogitsShapeAloneAreAnEighth) {
  const Program whole = load_program(find_program("gpt2"));
  const auto sliced = with_sliced_loss(whole, 8);
  ASSERT_TRUE(sliced);
  std::size_t fewer = 0;
  for (std::size_t i = 0; i < whole.codes.size(); ++i) {
    for (std::size_t j = 0; j < whole.codes[i].statements.size(); ++j) {
      const auto* op = std::get_if<Op>(&whole.codes[i].statements[j].action);
      if (!op) continue;
      const auto& other = std::get<Op>(sliced->codes[i].statements[j].action);
      EXPECT_EQ(op->flops, other.flops);
      EXPECT_EQ(op->read_bytes, other.read_bytes);
      for (std::size_t k = 0; k < op->types.size(); ++k) {
        const std::int64_t before = numel(whole.types[op->types[k]].shape);
        const std::int64_t after = numel(sliced->types[other.types[k]].shape);
        const bool logits = before == std::int64_t{8192} * 50257;
        EXPECT_EQ(after, logits ? before / 8 : before) << op->name;
        fewer += logits ? 1 : 0;
      }
    }
  }
  EXPECT_GE(fewer, 5U);  // logits, float32, log-softmax, and the gradients of these
}

TEST(SlicedLossTest, TheStepRunsCheckedAndInLessMemory) {
  const Program whole = load_program(find_program("gpt2"));
  const Hardware card = find_hardware("rtx4090");
  PlanRequest keep;
  keep.policies = {Policy::kKeep};
  const auto keeps = plan(whole, card, keep).rows.front().simulation;
  const auto sliced = plan(with_sliced_loss(whole, 8).value(), card, keep).rows.front().simulation;
  EXPECT_TRUE(sliced.errors.empty());
  EXPECT_TRUE(sliced.hazards.empty());
  EXPECT_FALSE(sliced.leftovers.any());
  EXPECT_EQ(sliced.compute_ns, keeps.compute_ns);
  EXPECT_LT(sliced.device_peak_bytes, keeps.device_peak_bytes - (std::int64_t{3} << 30));
}

// A parameter with the layout of the logits cannot be told apart from them, so there is no slicing.
TEST(SlicedLossTest, AParameterLikeTheLogitsIsLeftAlone) {
  Program program = load_program(find_program("gpt2"));
  const auto type = static_cast<TypeId>(program.types.size());
  program.types.push_back({DType::kBF16, {8192, 50257}, {50257, 1}, 0});
  program.globals.front().type = type;
  EXPECT_FALSE(with_sliced_loss(program, 8));
}

}  // namespace
}  // namespace ferry::plan
