// Each case is a forward of tests/formats/forward.h, of modules m.0, m.1, ..., and a backward.
#include "formats/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/layout.h"
#include "tests/formats/forward.h"

namespace ferry {
namespace {

using testing::enter;
using testing::joined;
using testing::kBody;
using testing::leave;
using testing::Lines;
using testing::node;
using testing::op;

const std::string kAnyOp = R"({"op":"a","in":[1],"out":[]})";
constexpr std::uint32_t kFirstLine = 7;  // of the forward's statements

Program step(const Lines& forward, const std::string& results = "[2]") {
  Program program = testing::program(forward, results);
  program.codes[0].statements.push_back({Backward{{2}, {}, {}, false, false}, 0});
  return program;
}

// Modules m.0, m.1, ... of these statements, and what comes after them.
Program modules(const std::vector<Lines>& statements, const Lines& after = {},
                const std::string& results = "[2]") {
  Lines lines;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const std::string name = "m." + std::to_string(i);
    lines.push_back(enter(name));
    lines.insert(lines.end(), statements[i].begin(), statements[i].end());
    lines.push_back(leave(name));
  }
  lines.insert(lines.end(), after.begin(), after.end());
  return step(lines, results);
}

std::string names(const Program& program) {
  std::string text;
  std::size_t at = 0;
  for (const StageUnit& unit : stage_units(program)) {
    EXPECT_EQ(unit.begin, at);
    at = unit.end;
    text += unit.name + " ";
  }
  EXPECT_EQ(at, program.codes[1].statements.size());
  return text;
}

template <class Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}
std::string refusal(const Program& program, const std::vector<std::size_t>& first_units = {0, 1}) {
  return refusal_of([&] { cut_into_stages(program, first_units); });
}

StagedProgram cut(const Program& program, const std::vector<std::size_t>& first_units = {0, 1}) {
  StagedProgram staged = cut_into_stages(program, first_units);
  check_program(staged.program, "staged");
  return staged;
}

// Main, then a line of text for each statement and signature of the stages.
std::string text(const StagedProgram& staged) {
  const std::string all = to_text(staged.program);
  return all.substr(all.find("{\"call\""));
}

TEST(StageUnitsTest, BlocksAndWhatIsAroundThem) {
  EXPECT_EQ(names(modules({{kAnyOp}, {kAnyOp, kAnyOp, op("1", "2")}})), "m.0 m.1 ");
  // What is between two blocks is the first one's, and so are frees after the last.
  EXPECT_EQ(
      names(step({op("1", "3"), enter("m.0"), kAnyOp, kAnyOp, leave("m.0"), kAnyOp, enter("m.1"),
                  kAnyOp, kAnyOp, leave("m.1"), R"({"free":[3]})", op("1", "2")})),
      "begin m.0 m.1 end ");
  // A root around them all is no block.
  EXPECT_EQ(names(step({enter("r"), enter("m.0"), kAnyOp, leave("m.0"), enter("m.1"), op("1", "2"),
                        leave("m.1"), leave("r")})),
            "m.0 m.1 ");
}

TEST(StageUnitsTest, WhereLittleRepeatsTheOutermostModules) {
  const Lines levels = {enter("e.0"),  kAnyOp,       leave("e.0"), enter("e.1"), kAnyOp,
                        leave("e.1"),  enter("mid"), kAnyOp,       leave("mid"), enter("none"),
                        leave("none"), enter("d"),   op("1", "2"), leave("d")};
  EXPECT_EQ(names(step(levels)), "e.0 e.1 mid d ");
  Lines root = levels;
  root.insert(root.begin(), enter("root"));
  root.push_back(leave("root"));
  EXPECT_EQ(names(step(root)), "e.0 e.1 mid d ");
}

TEST(StageUnitsTest, SegmentsOfAnOutlinedForward) {
  Program program = step({op("1", "3"), op("1", "2")});
  Code segment{CodeKind::kSegment, "s", {}, {}, {2}, {}, 0};
  segment.statements = step({node("0", "2", "1"), op("1", "2")}).codes[1].statements;
  program.codes.push_back(std::move(segment));
  for (Statement& statement : program.codes[1].statements) {
    const Slot out = std::get<Op>(statement.action).out[0];
    statement.action = Call{.code = 3, .in = {}, .out = {out}, .recompute = Recompute::kCheckpoint};
  }
  EXPECT_EQ(names(program), "s s ");
  EXPECT_EQ(stage_units(program)[1].called, std::vector<CodeId>{3});
  EXPECT_EQ(stage_units(program)[1].backward, std::vector<CodeId>{2});
  cut(program);
}

TEST(StageUnitsTest, WhatIsNoStepOfSeveralPartsIsRefused) {
  EXPECT_EQ(
      refusal_of([] { stage_units(step({op("1", "2")})); }),
      "cannot cut p into stages: its forward has no modules that repeat or follow each other");
  EXPECT_EQ(refusal_of([] { stage_units(testing::program({op("1", "2")})); }),
            "a pipeline needs a program whose main code is one call and one backward");
  EXPECT_EQ(refusal(modules({{kAnyOp}, {op("1", "2")}}), {0, 2}),
            "expected the first units of stages to ascend from 0 and to be below 2");
  EXPECT_EQ(refusal(modules({{kAnyOp}, {op("1", "2")}}), {0, 0}),
            refusal(modules({{kAnyOp}, {op("1", "2")}}), {1}));
  Program program = modules({{kAnyOp}, {op("1", "2")}});
  std::get<Call>(program.codes[0].statements[0].action).recompute = Recompute::kCheckpoint;
  EXPECT_EQ(refusal(program),
            "a pipeline needs a program whose main code is a plain call and a backward");
}

// As in captures, 4 is an edge and 5 its tensor. 5 is used in both later stages, and 3 in none.
TEST(StagesTest, WhatCrossesIsARouteForEachStageThatReadsIt) {
  const StagedProgram staged =
      cut(modules({{node("0", "4", "1"), op("1", "5"), op("1", "3")},
                   {R"({"node":"N","id":1,"in":[4],"out":[6],"saved":[5],"body":2})", op("5", "7")},
                   {R"({"free":[3,4]})", op("7,5", "8"), R"({"free":[5,7]})", op("8", "2")}}),
          {0, 1, 2});
  EXPECT_EQ(staged.routes, (std::vector<StageRoute>{
                               {.from = 0, .result = 0, .to = 1, .argument = 0, .edge = true},
                               {.from = 0, .result = 1, .to = 1, .argument = 1, .tensor = true},
                               {.from = 0, .result = 1, .to = 2, .argument = 0, .tensor = true},
                               {.from = 1, .result = 0, .to = 2, .argument = 1, .tensor = true}}));
  // The input is read by all three: 2 and 3 are its copies.
  EXPECT_EQ(text(staged).substr(0, text(staged).find(R"({"code":2)")),
            joined({R"({"call":1,"in":[],"out":[3,4]})", R"({"call":3,"in":[3,4],"out":[5]})",
                    R"({"free":[3]})", R"({"call":4,"in":[4,5],"out":[2]})", R"({"free":[4,5]})",
                    R"({"backward":[2]})",
                    R"({"code":1,"kind":"segment","name":"f@0","arguments":[],"results":[2,3]})",
                    enter("m.0"), node("0", "2", "1"), op("1", "3"), op("1", "4"), leave("m.0")}));
  EXPECT_EQ(
      text(staged).substr(text(staged).find(R"({"code":3)")),
      joined({R"({"code":3,"kind":"segment","name":"f@1","arguments":[2,3],"results":[5]})",
              enter("m.1"), R"({"node":"N","id":1,"in":[2],"out":[4],"saved":[3],"body":2})",
              op("3", "5"), leave("m.1"),
              R"({"code":4,"kind":"segment","name":"f@2","arguments":[2,3],"results":[5]})",
              enter("m.2"), op("3,2", "4"), R"({"free":[2,3]})", op("4", "5"), leave("m.2")}));
  EXPECT_EQ(staged.root, 0u);
  EXPECT_EQ(staged.stages[1].first_unit, "m.1");
  EXPECT_EQ(staged.program.codes[4].statements[1].line, kFirstLine + 11);
}

// 3 is held by main: it is not freed there, and nobody's route.
TEST(StagesTest, WhatMainHoldsComesFromItsStage) {
  Program program = modules({{op("1", "3")}, {op("0", "2")}});
  program.codes[1].results = {3, 2};
  std::get<Call>(program.codes[0].statements[0].action).out = {5, 2};
  const StagedProgram staged = cut(program);
  EXPECT_TRUE(staged.routes.empty());
  EXPECT_EQ(text(staged).substr(0, text(staged).find(R"({"code")")),
            joined({R"({"call":1,"in":[],"out":[5]})", R"({"call":3,"in":[],"out":[2]})",
                    R"({"backward":[2]})"}));
}

TEST(StagesTest, ModulesAroundACutAreInBothStages) {
  const StagedProgram staged = cut(step({enter("r"), enter("m.0"), kAnyOp, leave("m.0"),
                                         enter("m.1"), op("0", "2"), leave("m.1"), leave("r")}));
  EXPECT_NE(text(staged).find(joined({enter("r"), enter("m.0"), kAnyOp, leave("m.0"), leave("r")})),
            std::string::npos);
  EXPECT_NE(
      text(staged).find(joined({enter("r"), enter("m.1"), op("0", "2"), leave("m.1"), leave("r")})),
      std::string::npos);
}

// Stage 0 uses the tied weight's storage by its alias; the body names the parameter itself.
TEST(StagesTest, GlobalsAndBodiesOfSeveralStagesAreCopied) {
  const Program program = testing::parse(
      R"({"ferry":"program","schema":1,"name":"p"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4],"grad":true}
{"global":1,"kind":"parameter","name":"tied","dtype":"f32","shape":[4],"grad":true,"alias":0}
{"global":2,"kind":"input","name":"unused","dtype":"f32","shape":[4]}
{"code":0,"kind":"main"}
{"call":1,"in":[],"out":[3]}
{"backward":[3]}
{"code":1,"kind":"segment","name":"f","arguments":[],"results":[6]}
{"enter":"m.0"}
{"node":"N","id":0,"in":[1],"out":[3],"saved":[0],"body":2}
{"op":"a","in":[1],"out":[{"slot":4,"dtype":"f32","shape":[4]}]}
{"leave":"m.0"}
{"enter":"m.1"}
{"node":"N","id":1,"in":[3],"out":[5],"saved":[4],"body":2}
{"op":"a","in":[4],"out":[{"slot":6,"dtype":"f32","shape":[4]}]}
{"leave":"m.1"}
{"code":2,"kind":"body","name":"B","arguments":[3],"saved":[4],"results":[5]}
{"op":"g","in":[3,1],"out":[{"slot":5,"dtype":"f32","shape":[4]}]}
)");
  const StagedProgram staged = cut(program);
  const auto& globals = staged.program.globals;
  ASSERT_EQ(globals.size(), 5u);
  EXPECT_EQ(globals[3].name, "w@1");
  EXPECT_EQ(globals[4].name, "tied@1");
  EXPECT_EQ(globals[4].alias, 3u);
  EXPECT_EQ(staged.stage_of_global, (std::vector<std::uint32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(staged.replica_of, (std::vector<Slot>{kNoSlot, kNoSlot, kNoSlot, 0, 1}));
  const std::string all = to_text(staged.program);
  EXPECT_NE(all.find(joined(
                {R"({"code":2,"kind":"body","name":"B","arguments":[5],"saved":[6],"results":[7]})",
                 R"({"op":"g","in":[5,1],"out":[{"slot":7,"dtype":"f32","shape":[4]}]})"})),
            std::string::npos)
      << all;
  EXPECT_NE(all.find(joined(
                {R"({"code":4,"kind":"body","name":"B","arguments":[5],"saved":[6],"results":[7]})",
                 R"({"op":"g","in":[5,4],"out":[{"slot":7,"dtype":"f32","shape":[4]}]})"})),
            std::string::npos)
      << all;
}

const std::string kRefused = "unit m.1 of line 10 cannot begin a stage: ";
const std::string kParted = "unit m.1 of line 11 cannot begin a stage: ";

std::string parted(const std::string& first, const Lines& second) {
  return refusal(modules({{first, kAnyOp}, second}));
}

TEST(StagesTest, WhatBelongsToOneDeviceIsNotParted) {
  const std::string made = op("1", "3");
  EXPECT_EQ(parted(node("0", "3", ""), {op("1", "2"), R"({"save":0,"slots":[2]})"}),
            kParted + "line 13 saves for node 0, made before");
  EXPECT_EQ(
      parted(node("0", "2", "1"), {op("1", "2")}),
      kParted + "slot 2 has a tensor or edge from an earlier stage, and line 12 assigns it again");
  EXPECT_EQ(
      parted(made, {node("0", "3", "1"), op("3", "2")}),
      kParted + "slot 3 has a tensor or edge from an earlier stage, and line 12 assigns it again");
  const std::string view = R"({"view":4,"of":3,"dtype":"f32","shape":[2]})";
  const std::string write = R"({"op":"w_","in":[4],"out":[],"writes":[0]})";
  EXPECT_EQ(parted(made, {view, write, op("1", "2")}),
            kParted + "line 13 writes in place what an earlier stage made");
  EXPECT_EQ(parted(op("1", "2"), {kAnyOp}), kParted + "the loss is made before it");
}

TEST(StagesTest, ABackwardWithinTheForwardStaysInItsStage) {
  const std::string backward = R"({"backward":[4],"inputs":[0],"out":[5]})";
  const std::string later = R"({"node":"N","id":1,"in":[3],"out":[4],"saved":[3],"body":2})";
  const Lines made = {node("0", "3", "1"), op("1", "3")};
  EXPECT_EQ(refusal(modules({made, {later, op("3", "4"), backward, op("5", "2")}})),
            kParted + "line 14 goes backward into an earlier stage");
  EXPECT_EQ(
      refusal(modules({{kAnyOp, op("1", "3")}, {later, op("3", "4"), backward, op("5", "2")}})),
      "");
}

TEST(StagesTest, RegionsStreamsAndAmbientStateEndBeforeACut) {
  const auto around = [](const std::string& begin, const Lines& rest = {op("1", "2")}) {
    Lines lines = {enter("m.0"), begin, kAnyOp, leave("m.0"), enter("m.1")};
    lines.insert(lines.end(), rest.begin(), rest.end());
    lines.push_back(leave("m.1"));
    return lines;
  };
  const std::string refused = "unit m.1 of line 11 cannot begin a stage: ";
  EXPECT_EQ(refusal(step(around(R"({"stream":1})"))), refused + "it is computed on stream 1");
  EXPECT_EQ(refusal(step(around(R"({"ambient":2})"))), refused + "it is under ambient state 2");
  Program program = modules({{kAnyOp, kAnyOp}, {op("1", "2")}});
  auto& statements = program.codes[1].statements;
  statements.insert(statements.begin(), {When{.recomputing = false, .count = 5}, 6});
  EXPECT_EQ(refusal(program),
            "unit m.1 of line 11 cannot begin a stage: it is under the when of "
            "line 6");
  statements.front().action = Exclude{true};
  statements.push_back({Exclude{false}, 0});
  EXPECT_EQ(refusal(program),
            "unit m.1 of line 11 cannot begin a stage: it is in the exclusion of line 6");
}

TEST(StagesTest, SideStreamsAndStagesWaitForEachOther) {
  const std::string aside = R"({"stream":1})";
  const std::string back = R"({"stream":0})";
  const std::string out = R"({"sync":[0,1]})";
  const std::string in = R"({"sync":[1,0]})";
  const std::string loss = op("1", "2");
  EXPECT_EQ(refusal(modules({{aside, kAnyOp, back, in}, {loss}})), "");
  EXPECT_EQ(refusal(modules({{aside, kAnyOp, back}, {loss}})),
            "unit m.1 of line 12 cannot begin a stage: stream 0 does not wait before it for stream "
            "1");
  EXPECT_EQ(refusal(modules({{aside, kAnyOp, in, kAnyOp, back}, {loss}})),
            "unit m.1 of line 14 cannot begin a stage: stream 0 does not wait before it for stream "
            "1");
  EXPECT_EQ(refusal(modules({{kAnyOp}, {out, aside, loss, back, in}})), "");
  EXPECT_EQ(refusal(modules({{out, kAnyOp}, {aside, loss, back, in}})),
            kParted +
                "line 13 computes on stream 1, which does not wait in this stage for stream "
                "0");
}

// 3 is of 4 elements, and 4 is its second half: of 8 bytes from byte 8 on.
TEST(StagesTest, OnlyTheTensorTravelsNotItsStorage) {
  const Lines first = {op("1", "3"), R"({"view":4,"of":3,"dtype":"f32","shape":[2],"offset":2})"};
  const auto second = [](const std::string& offset) {
    return Lines{R"({"view":5,"of":4,"dtype":"f32","shape":[1],"offset":)" + offset + "}",
                 op("5", "2")};
  };
  EXPECT_EQ(refusal(modules({first, second("3")})), "");
  EXPECT_EQ(refusal(modules({first, second("1")})),
            "unit m.1 of line 11 cannot begin a stage: line 12 views bytes 4 to 8 of a storage of "
            "which an earlier stage hands on 8 to 16");
  // What a body views counts as well.
  Program program = modules({first, {node("0", "5", "4"), op("4", "2")}});
  program.types.push_back(contiguous_layout(DType::kF32, {4}));
  Code& body = program.codes[2];
  body.statements.push_back(
      {View{9, body.saved[0], static_cast<TypeId>(program.types.size() - 1)}, 20});
  EXPECT_EQ(refusal(program),
            "unit m.1 of line 11 cannot begin a stage: line 20 views bytes 0 to 16 of a storage of "
            "which an earlier stage hands on 8 to 16");
}

TEST(StagesTest, WhatIsWrittenHasNoCopies) {
  const std::string write = R"({"op":"w_","in":[0],"out":[],"writes":[0]})";
  EXPECT_EQ(refusal(modules({{write}, {op("0", "2")}})),
            "line 8 writes w, which several stages use: each would have its own copy");
  EXPECT_EQ(refusal(modules({{R"({"move":0})", kAnyOp}, {op("0", "2")}})),
            "line 8 writes w, which several stages use: each would have its own copy");
  EXPECT_EQ(refusal(modules({{write}, {op("1", "2")}})), "");
}

TEST(StagesTest, AMarkedCallIsNotCut) {
  Program program = modules({{kAnyOp}, {op("1", "2")}});
  auto& statements = program.codes[1].statements;
  statements.insert(statements.begin(), {Module{"c", true, std::vector<Slot>()}, 6});
  statements.push_back({Module{"c", false}, 0});
  EXPECT_EQ(refusal(program), kRefused + "it is in the marked call of line 6");
}

}  // namespace
}  // namespace ferry
