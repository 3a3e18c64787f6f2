#include "formats/microbatches.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "formats/builder.h"
#include "formats/program_check.h"

namespace ferry {
namespace {

// One parameter; a segment with `results` results; main calls it to `outs` and goes backward from
// the first.
struct Step {
  explicit Step(std::vector<Slot> outs) {
    const TypeId type = b.type({4});
    b.global(GlobalKind::kParameter, type);
    const CodeId segment = b.code(CodeKind::kSegment, "forward");
    for (std::size_t i = 0; i < outs.size(); ++i) b.result(segment, b.op(segment, "f", {0}, type));
    b.add(0, Call{segment, {}, outs});
    b.add(0, Backward{{outs.front()}, {}, {}, false, false});
    b.program.codes[0].statements[0].line = 3;
    b.program.codes[0].statements[1].line = 4;
  }
  Backward& backward() { return std::get<Backward>(b.program.codes[0].statements[1].action); }
  Builder b;
};

// "F0 F1 B1 B0": which micro-batch, by the first slot of the call and of the root.
std::string order_of(std::int64_t count, MicrobatchOrder order) {
  const Program program = with_microbatches(Step({1}).b.program, count, order);
  check_program(program, "p");
  std::string text;
  for (const Statement& statement : program.codes[0].statements) {
    if (const auto* call = std::get_if<Call>(&statement.action)) {
      text += " F" + std::to_string(call->out[0] - 1);
    } else if (const auto* backward = std::get_if<Backward>(&statement.action)) {
      text += " B" + std::to_string(backward->roots[0] - 1);
    }
  }
  return text.substr(1);
}

TEST(MicrobatchesTest, TheOrders) {
  EXPECT_EQ(order_of(3, MicrobatchOrder::kFbfb), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(order_of(3, MicrobatchOrder::kFfbb), "F0 F1 F2 B2 B1 B0");
  EXPECT_EQ(order_of(2, MicrobatchOrder::kOneForwardOneBackward), "F0 F1 B0 B1");
  EXPECT_EQ(order_of(4, MicrobatchOrder::kOneForwardOneBackward), "F0 F1 B0 F2 B1 F3 B2 B3");
}

TEST(MicrobatchesTest, OneIsTheProgramItself) {
  const Program program = Step({1}).b.program;
  const Program same = with_microbatches(program, 1, MicrobatchOrder::kFfbb);
  EXPECT_EQ(same.codes[0].statements.size(), 2u);
}

TEST(MicrobatchesTest, EachOneFreesItsOwnSlotsAfterItsBackward) {
  const Program program = with_microbatches(Step({1, 2}).b.program, 2, MicrobatchOrder::kFfbb);
  const auto& statements = program.codes[0].statements;
  ASSERT_EQ(statements.size(), 6u);
  EXPECT_EQ(std::get<Call>(statements[1].action).out, (std::vector<Slot>{3, 4}));
  EXPECT_EQ(std::get<Backward>(statements[2].action).roots, std::vector<Slot>{3});
  EXPECT_EQ(std::get<Free>(statements[3].action).slots, (std::vector<Slot>{3, 4}));
  EXPECT_EQ(std::get<Free>(statements[5].action).slots, (std::vector<Slot>{1, 2}));
}

TEST(MicrobatchesTest, TheOptionsOfBackwardAndTheLinesStay) {
  Step step({1});
  step.backward().retain_graph = true;
  const Program program = with_microbatches(step.b.program, 2, MicrobatchOrder::kFbfb);
  for (const Statement& statement : program.codes[0].statements) {
    if (const auto* backward = std::get_if<Backward>(&statement.action)) {
      EXPECT_TRUE(backward->retain_graph);
      EXPECT_EQ(statement.line, 4u);
    } else if (std::holds_alternative<Call>(statement.action)) {
      EXPECT_EQ(statement.line, 3u);
    }
  }
}

TEST(MicrobatchesTest, SlotsWithGapsDoNotMeet) {
  const Program program = with_microbatches(Step({3, 1, 6}).b.program, 4, MicrobatchOrder::kFfbb);
  check_program(program, "p");
}

TEST(MicrobatchesTest, GradientsThatBackwardHandsOutHaveSlotsOfTheirOwn) {
  Step step({1});
  step.backward().inputs = {0};
  step.backward().out = {2};
  const Program program = with_microbatches(step.b.program, 3, MicrobatchOrder::kFbfb);
  check_program(program, "p");
  std::vector<Slot> outs;
  for (const Statement& statement : program.codes[0].statements) {
    if (const auto* backward = std::get_if<Backward>(&statement.action)) {
      EXPECT_EQ(backward->inputs, std::vector<Slot>{0});
      outs.push_back(backward->out.at(0));
    }
  }
  EXPECT_EQ(outs.size(), 3u);
}

// A capture of LibTorch's was refused: its caller also looks at the loss, and frees both.
TEST(MicrobatchesTest, WhatTheCallerDoesWithTheLossIsNoPartOfTheStep) {
  Step step({1, 2});
  step.backward().roots = {3};
  auto& main = step.b.program.codes[0].statements;
  std::get<Call>(main[0].action).out = {2, 3};
  main.insert(main.begin() + 1, {View{1, 2, 0}, 5});
  main.push_back({Free{{2, 3}}, 6});
  const Slot root = step.b.program.codes[1].results[1];
  const Program plain = with_main_step(step.b.program);
  check_program(plain, "p");
  const auto found = main_step(plain);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->call.out, std::vector<Slot>{3});
  EXPECT_EQ(plain.codes[1].results, std::vector<Slot>{root});
  EXPECT_EQ(found->call_line, 3u);
  EXPECT_EQ(found->backward_line, 4u);
  check_program(with_microbatches(step.b.program, 2, MicrobatchOrder::kFbfb), "p");

  // An op of the caller's is part of the step; and what somebody else calls has its results.
  Program more = step.b.program;
  more.codes[0].statements.insert(more.codes[0].statements.begin() + 1, {Op{}, 5});
  EXPECT_EQ(with_main_step(more).codes[0].statements.size(), 5u);
  more = step.b.program;
  more.codes[1].statements.push_back({Call{.code = 1, .in = {}, .out = {}}, 9});
  EXPECT_EQ(with_main_step(more).codes[0].statements.size(), 4u);
}

TEST(MicrobatchesTest, OtherProgramsAreRefused) {
  const auto refuses = [](const Program& program, std::int64_t count) {
    try {
      with_microbatches(program, count, MicrobatchOrder::kFbfb);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Step step({1});
  EXPECT_EQ(refuses(step.b.program, 0), "a step has at least one micro-batch");
  EXPECT_EQ(refuses(step.b.program, -1), "a step has at least one micro-batch");
  step.b.add(0, SetStream{1});
  const std::string other =
      "micro-batches need a program whose main code is one call and one backward";
  EXPECT_EQ(refuses(step.b.program, 2), other);
  EXPECT_EQ(refuses(step.b.program, 1), "");
  EXPECT_EQ(refuses(Builder().program, 2), other);
}

// Slots are 32 bits wide: those of the last micro-batch once began anew at 0.
TEST(MicrobatchesTest, MoreSlotsThanAFrameMayHaveAreRefused) {
  try {
    with_microbatches(Step({1, 4000}).b.program, 4096, MicrobatchOrder::kFfbb);
    FAIL() << "taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "4096 micro-batches need more than 4194304 slots in the main code");
  }
}

}  // namespace
}  // namespace ferry
