// Each case is a forward of tests/formats/forward.h.
#include "formats/outline.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

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
using testing::parse;
using testing::program;

// The forward of the outlined program, and its new codes, as text.
std::string outlined(const Program& program, const Lines& modules) {
  const Program result = outline(program, modules);
  check_program(result, "outlined");
  const std::string text = to_text(result);
  EXPECT_EQ(to_text(parse(text)), text);
  const std::size_t forward = text.find("\n", text.find("{\"code\":1")) + 1;
  const std::size_t body = text.find(kBody);
  return text.substr(forward, body - forward) + text.substr(body + kBody.size());
}

std::string refusal(const Program& program, const Lines& modules) {
  try {
    outline(program, modules);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string code3(const std::string& signature) {
  return R"({"code":3,"kind":"segment","name":"m",)" + signature + "}";
}

// 5 comes in and is freed inside; 6 lives and dies inside; 3 comes out.
TEST(OutlineTest, AModuleBecomesACheckpointOfItsOwnCode) {
  const Program before = program({op("1", "5"), enter("m"), op("5,0", "6"), R"({"free":[5]})",
                                  op("6", "3"), R"({"free":[6]})", leave("m"), op("3", "2")});
  EXPECT_EQ(outlined(before, {"m"}),
            joined({op("1", "5"), R"({"call":3,"in":[5],"out":[3],"recompute":"checkpoint"})",
                    R"({"free":[5]})", op("3", "2"), code3(R"("arguments":[2],"results":[4])"),
                    enter("m"), op("2,0", "3"), R"({"free":[2]})", op("3", "4"), R"({"free":[3]})",
                    leave("m")}));
  const Program after = outline(before, Lines{"m"});
  const Code& forward = after.codes[1];
  EXPECT_EQ(forward.statements[1].line, 8);  // of the marker
  EXPECT_EQ(after.codes[3].line, 8);
  EXPECT_EQ(after.codes[3].statements[1].line, 9);
  EXPECT_EQ(std::get<Call>(forward.statements[1].action).recompute, Recompute::kCheckpoint);
}

// As in captures, 4 and 5 are the edge and the tensor of one value, and so are 6 and 7.
TEST(OutlineTest, SlotsThatCarryAnEdgeAloneComeInAndOut) {
  const std::string outer = node("0", "4", "1");
  const std::string inner = R"({"node":"N","id":1,"in":[4],"out":[6],"saved":[5],"body":2})";
  const std::string last = R"({"node":"N","id":2,"in":[6],"out":[2],"saved":[7],"body":2})";
  EXPECT_EQ(
      outlined(program({outer, op("0", "5"), enter("m"), inner, op("5", "7"), leave("m"), last}),
               {"m"}),
      joined({outer, op("0", "5"), R"({"call":3,"in":[4,5],"out":[6,7],"recompute":"checkpoint"})",
              last, code3(R"("arguments":[2,3],"results":[4,5])"), enter("m"),
              R"({"node":"N","id":1,"in":[2],"out":[4],"saved":[3],"body":2})", op("3", "5"),
              leave("m")}));
}

// 5 is only freed inside: nothing needs it there. 6 is only freed outside: so long it lives. 7 is
// not freed: it dies with its frame.
TEST(OutlineTest, WhatIsFreedAfterwardsIsHandedOut) {
  EXPECT_EQ(
      outlined(program({op("1", "5"), enter("m"), op("1", "6"), op("6", "2"), op("1", "7"),
                        R"({"free":[5]})", leave("m"), R"({"free":[6]})"}),
               {"m"}),
      joined({op("1", "5"), R"({"call":3,"in":[],"out":[2,6],"recompute":"checkpoint"})",
              R"({"free":[5]})", R"({"free":[6]})", code3(R"("arguments":[],"results":[3,2])"),
              enter("m"), op("1", "2"), op("2", "3"), op("1", "4"), leave("m")}));
}

// The slot that went in keeps its edge, as an argument does; what comes out has the new one.
TEST(OutlineTest, ASlotThatGetsAnotherEdgeInsideComesBackAsAnother) {
  EXPECT_EQ(outlined(program({op("1", "3"), enter("m"), node("0", "3", "3"), leave("m"),
                              op("3", "2"), R"({"free":[3]})"}),
                     {"m"}),
            joined({op("1", "3"), R"({"call":3,"in":[3],"out":[4],"recompute":"checkpoint"})",
                    R"({"free":[3]})", op("4", "2"), R"({"free":[4]})",
                    code3(R"("arguments":[2],"results":[2])"), enter("m"), node("0", "2", "2"),
                    leave("m")}));
}

std::string enter(const std::string& name, const std::string& arguments) {
  return "{\"enter\":\"" + name + "\",\"arguments\":[" + arguments + "]}";
}

// A call of checkpoint was handed 6, the step's input and 6 again, in this order; it reads 5 and
// the input besides.
TEST(OutlineTest, AMarkedCallTakesWhatItWasHandedAndCapturesTheRest) {
  EXPECT_EQ(outlined(program({op("1", "5"), op("1", "6"), enter("m", "6,1,6"), op("6,5,1", "2"),
                              leave("m")}),
                     {"m"}),
            joined({op("1", "5"), op("1", "6"),
                    R"({"call":3,"in":[6,1,6,5],"out":[2],"recompute":"checkpoint","captured":1})",
                    code3(R"("arguments":[2,3,4,5],"results":[6])"), enter("m", "2,1,2"),
                    op("2,5,1", "6"), leave("m")}));
}

// 5 is not read; 6 is, and was not handed over.
TEST(OutlineTest, AMarkedCallTakesWhatItDoesNotReadAndNoMore) {
  EXPECT_EQ(outlined(program({op("1", "5"), enter("m", "5"), op("1", "2"), leave("m")}), {"m"}),
            joined({op("1", "5"), R"({"call":3,"in":[5],"out":[2],"recompute":"checkpoint"})",
                    code3(R"("arguments":[2],"results":[3])"), enter("m", "2"), op("1", "3"),
                    leave("m")}));
  EXPECT_EQ(
      outlined(program({op("1", "6"), enter("m", ""), op("6", "2"), leave("m")}), {"m"}),
      joined(
          {op("1", "6"), R"({"call":3,"in":[6],"out":[2],"recompute":"checkpoint","captured":1})",
           code3(R"("arguments":[2],"results":[3])"), enter("m", ""), op("2", "3"), leave("m")}));
}

// A library has checkpoints that were off: the modules may be called so, and nothing was called.
TEST(OutlineTest, ModulesThatMayBeCalledAreSegmentsIfNoneIsACall) {
  const std::string callable = R"({"enter":"m","arguments":[6],"called":false})";
  const std::vector<std::string> lines = {op("1", "5"), op("1", "6"), callable, op("6,5", "2"),
                                          leave("m")};
  const Program one = program(lines);
  EXPECT_NE(to_text(one).find(callable), std::string::npos);
  EXPECT_FALSE(marks_calls(one));
  EXPECT_TRUE(marks_callable(one));
  EXPECT_EQ(segment_modules(one), std::vector<std::string>{"m"});
  EXPECT_NE(
      outlined(one, {"m"}).find(R"("in":[6,5],"out":[2],"recompute":"checkpoint","captured")"),
      std::string::npos);
  const Program both =
      program({enter("n", ""), leave("n"), lines[0], lines[1], callable, lines[3], lines[4]});
  EXPECT_TRUE(marks_calls(both));
  EXPECT_FALSE(marks_callable(both));
  EXPECT_EQ(segment_modules(both), std::vector<std::string>{"n"});
}

TEST(OutlineTest, EachRunIsASegmentAndTheOutermostIsTaken) {
  const Program before =
      program({enter("m"), op("1", "3"), leave("m"), enter("n"), enter("m"), op("3", "4"),
               leave("m"), leave("n"), enter("m"), op("4", "2"), leave("m")});
  const std::string twice = outlined(before, {"m", "n"});
  EXPECT_EQ(twice, outlined(before, {"n", "m"}));
  EXPECT_EQ(twice.substr(0, twice.find("{\"code\"")),
            joined({R"({"call":3,"in":[],"out":[3],"recompute":"checkpoint"})",
                    R"({"call":4,"in":[3],"out":[4],"recompute":"checkpoint"})",
                    R"({"call":5,"in":[4],"out":[2],"recompute":"checkpoint"})"}));
  EXPECT_EQ(to_text(outline(before, Lines{})), to_text(before));
}

// The when still holds what it held: a call and a free for four statements.
TEST(OutlineTest, AWhenHoldsWhatItHeld) {
  const std::string last = op("1", "2");
  EXPECT_EQ(outlined(program({R"({"when":"first","count":7})", op("1", "3"), enter("m"),
                              op("3", "4"), R"({"free":[3]})", leave("m"), R"({"free":[4]})",
                              R"({"ambient":1})", last}),
                     {"m"}),
            joined({R"({"when":"first","count":5})", op("1", "3"),
                    R"({"call":3,"in":[3],"out":[4],"recompute":"checkpoint"})", R"({"free":[3]})",
                    R"({"free":[4]})", R"({"ambient":1})", last,
                    code3(R"("arguments":[2],"results":[3])"), enter("m"), op("2", "3"),
                    R"({"free":[2]})", leave("m")}));
}

TEST(OutlineTest, WhatACallCannotHandOverIsRefused) {
  const std::string save = R"({"save":0,"slots":[2]})";
  const std::string unsaved = node("0", "3", "");
  EXPECT_EQ(refusal(program({unsaved, op("1", "2"), enter("m"), save, leave("m")}), {"m"}),
            "module m of line 9 cannot be a segment: line 10 saves for node 0, made outside");
  EXPECT_EQ(refusal(program({enter("m"), unsaved, op("1", "2"), leave("m"), save}), {"m"}),
            "module m of line 7 cannot be a segment: line 11 saves for node 0, made inside");
  EXPECT_EQ(refusal(program({node("0", "2", "1"), enter("m"), op("1", "2"), leave("m")}), {"m"}),
            "module m of line 8 cannot be a segment: slot 2 has its edge from outside and its "
            "tensor inside");
  EXPECT_EQ(refusal(program({op("1", "2"), enter("m"), R"({"raise":"boom"})"}), {"m"}),
            "module m of line 8 cannot be a segment: it is never left");
  EXPECT_EQ(refusal(program({op("1", "2")}), {"m"}),
            "there is no module m in the program's forward");
}

Lines repeated(const Lines& names) {
  Lines lines;
  for (const std::string& name : names) {
    const bool leaves = name[0] == '/';
    lines.push_back(leaves ? leave(name.substr(1)) : enter(name));
    if (!leaves) lines.push_back(R"({"op":"a","in":[1],"out":[]})");
  }
  lines.push_back(op("1", "2"));
  return segment_modules(program(lines));
}

TEST(OutlineTest, TheBlocksRepeat) {
  EXPECT_EQ(repeated({}), Lines{});
  EXPECT_EQ(repeated({"a", "a.b", "/a.b", "/a"}), Lines{});
  // A block counts for its parts.
  EXPECT_EQ(repeated({"h.0", "h.0.l1", "/h.0.l1", "h.0.l2", "/h.0.l2", "/h.0", "h.10", "h.10.l1",
                      "/h.10.l1", "h.10.l2", "/h.10.l2", "/h.10"}),
            (Lines{"h.0", "h.10"}));
  // Blocks of several parents are one family; a block that runs again is named once.
  EXPECT_EQ(repeated({"s1.0", "/s1.0", "s1.1", "/s1.1", "s1.0", "/s1.0", "s2.0", "/s2.0"}),
            (Lines{"s1.0", "s1.1", "s2.0"}));
}

TEST(OutlineTest, MarkedCallsAreTheSegmentsWhateverRepeats) {
  const std::string some = R"({"op":"a","in":[1],"out":[]})";
  EXPECT_EQ(segment_modules(
                program({enter("h.0"), some, leave("h.0"), enter("h.1"), some, enter("c", ""),
                         enter("d", "1"), leave("d"), leave("c"), leave("h.1"), op("1", "2")})),
            (Lines{"c", "d"}));
}

// What stages hold beside their blocks is little.
TEST(OutlineTest, BlocksRatherThanTheirStages) {
  Lines names;
  Lines blocks;
  for (const std::string stage : {"s1", "s2"}) {
    names.push_back(stage);
    for (int i = 0; i < 12; ++i) {
      blocks.push_back(stage + "." + std::to_string(i));
      names.push_back(blocks.back());
      names.push_back("/" + blocks.back());
    }
    names.push_back("/" + stage);
  }
  EXPECT_EQ(repeated(names), blocks);
}

}  // namespace
}  // namespace ferry
