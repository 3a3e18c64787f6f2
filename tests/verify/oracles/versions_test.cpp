#include "verify/oracles/versions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/sim/support/layers.h"
#include "verify/programs/random_program.h"
#include "verify/programs/trial.h"

namespace ferry::verify {
namespace {

enum class Written { kNothing, kInput, kResult };

// One call, then a write of what it was given or of what it returned, then backward. The call's
// layer saves its output, and its op "mask" reads the input, which no node saves.
Program step(Recompute recompute, Written written) {
  test::Layers p;
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  const Slot y = p.layer_saves_output(id, "layer", p.op(id, "mask", x));
  p.b.result(id, y);
  const Slot in = p.begin();
  const Slot out = p.call(0, id, {in}, recompute)[0];
  if (written != Written::kNothing) {
    p.b.write(0, "late_", written == Written::kInput ? in : out);
  }
  p.backward(out);
  return p.take();
}

std::size_t errors(Recompute recompute, Written written, const SegmentPlan* plan = nullptr) {
  return expected_errors(step(recompute, written), {}, plan).size();
}

TEST(Versions, WhatIsNotWrittenIsNotRefused) {
  for (const Recompute each : {Recompute::kNone, Recompute::kCheckpoint, Recompute::kReplay}) {
    EXPECT_EQ(errors(each, Written::kNothing), 0u);
  }
}

TEST(Versions, AnInputIsRefusedWhereItIsNeededAgain) {
  EXPECT_EQ(errors(Recompute::kNone, Written::kInput), 0u) << "no node saved it";
  EXPECT_EQ(errors(Recompute::kCheckpoint, Written::kInput), 1u);
  EXPECT_EQ(errors(Recompute::kReplay, Written::kInput), 1u);
}

TEST(Versions, AResultIsRefusedUnlessItIsRecomputed) {
  EXPECT_EQ(errors(Recompute::kNone, Written::kResult), 1u);
  EXPECT_EQ(errors(Recompute::kCheckpoint, Written::kResult), 0u) << "what comes back is another";
  EXPECT_EQ(errors(Recompute::kReplay, Written::kResult), 1u);
}

TEST(Versions, WhatAPlanKeepsOrMovesIsRefused) {
  for (const SavedChoice choice : {SavedChoice::kKeep, SavedChoice::kOffload}) {
    SegmentPlan plan;
    plan.segments.resize(1);
    plan.segments[0].choices = {choice};
    EXPECT_EQ(errors(Recompute::kCheckpoint, Written::kResult, &plan), 1u);
    EXPECT_EQ(errors(Recompute::kCheckpoint, Written::kInput, &plan), 0u) << "nothing runs again";
  }
}

// A backward in forward needs what the span made of a tensor that forward wrote, so forward ends
// there. Where nothing runs again, it is each of the step's two backwards that needs the tensor.
TEST(Versions, ABackwardInASpanMayBeTheFirstToNeedIt) {
  Trial trial;
  trial.recipe.segments = trial.recipe.retain = true;
  trial.recipe.layers.resize(2);
  trial.recipe.layers[1].extra = Extra::kInnerBackward;
  trial.recipe.failure = StepFailure::kSavedWritten;
  trial.spans = {{.skips = 1, .operators = 4}};
  const Program program = make_program(trial.recipe);
  EXPECT_EQ(expected_errors(program, {}, nullptr).size(), 2u);
  EXPECT_EQ(expected_errors(program, spans_in(program, trial.spans), nullptr).size(), 1u);
}

TEST(Versions, TheErrorSaysWhereAndWhich) {
  test::Layers p;
  const Slot x = p.begin();
  const Slot y = p.layer(0, "a", x);
  const Slot z = p.layer(0, "b", y);
  p.b.write(0, "late_", x);
  p.b.write(0, "late_", x);
  p.backward(z);
  const auto errors = expected_errors(p.take(), {}, nullptr);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].unpacked, 1) << "b's input came back before a's";
  EXPECT_NE(errors[0].message.find("at version 2; expected version 0"), std::string::npos);
}

TEST(Versions, AnErrorTooManyOrTooFewOrElsewhereIsTold) {
  const sim::ProgramError early{0, "x", false, 1}, late{0, "x", false, 2};
  EXPECT_EQ(misrefused({early}, {early}), "");
  EXPECT_EQ(misrefused({early}, {}), "expected an error after 1 other saved tensors: x");
  EXPECT_EQ(misrefused({}, {late}), "unexpected error after 2 other saved tensors: x");
  EXPECT_EQ(misrefused({early}, {late}),
            "error after 2 other saved tensors: x, expected after 1 other saved tensors: x");
}

}  // namespace
}  // namespace ferry::verify
