// Each case is the lines of a program after one header and two globals: line 4 is the first of
// them.
#include "formats/program_check.h"

#include <gtest/gtest.h>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;
using testing::parse;

const std::string kHead = R"({"ferry":"program","schema":1,"name":"p"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4,4],"grad":true}
{"global":1,"kind":"input","name":"x","dtype":"f32","shape":[4,4]}
)";

std::string make(std::initializer_list<const char*> lines) {
  std::string text = kHead;
  for (const char* line : lines) text += std::string(line) + "\n";
  return text;
}

std::string error(std::initializer_list<const char*> lines) {
  return error_of([&] { parse(make(lines)); });
}

// Lines that the cases share. A body with one gradient, one saved tensor, one result.
const char* kMain = R"({"code":0,"kind":"main"})";
const char* kBody = R"({"code":1,"kind":"body","arguments":[5],"saved":[6],"results":[5]})";
const char* kOp7 = R"({"op":"a","in":[0,1],"out":[{"slot":7,"dtype":"f32","shape":[4,4]}]})";
const char* kUse7 = R"({"op":"b","in":[7],"out":[]})";
const char* kNode7 = R"({"node":"N","id":0,"in":[0],"out":[7],"saved":[1],"body":1})";
const char* kCall = R"({"call":1,"in":[7],"out":[8]})";

TEST(ProgramCheckTest, TheSampleIsFine) {
  EXPECT_EQ(error_of([] { parse(testing::kSample); }), "");
}

TEST(ProgramCheckTest, SlotsAreAssignedOnceAndUsedWhileTheyLive) {
  EXPECT_EQ(error({kMain, kOp7, kUse7}), "");
  EXPECT_EQ(error({kMain, kUse7}), "p.jsonl:5: slot 7 is used before it is assigned");
  EXPECT_EQ(error({kMain, kOp7, kOp7}), "p.jsonl:6: slot 7 is assigned twice");
  EXPECT_EQ(error({kMain, kOp7, R"({"free":[7]})", kUse7}),
            "p.jsonl:7: slot 7 is used after its free");
  EXPECT_EQ(error({kMain, kOp7, R"({"free":[7,7]})"}), "p.jsonl:6: slot 7 is used after its free");
  EXPECT_EQ(error({kMain, kOp7, R"({"free":[7]})", kOp7}),
            "p.jsonl:7: slot 7 is assigned after its free");
  EXPECT_EQ(error({kMain, R"({"free":[0]})"}),
            "p.jsonl:5: slot 0 lives for the whole run: it cannot be freed");
  EXPECT_EQ(error({kMain, R"({"op":"a","in":[],"out":[{"slot":1,"dtype":"f32","shape":[]}]})"}),
            "p.jsonl:5: slot 1 is assigned twice");
  EXPECT_EQ(error({kMain, R"({"record_use":7,"stream":1})"}),
            "p.jsonl:5: slot 7 is used before it is assigned");
  EXPECT_EQ(error({kMain, R"({"backward":[7]})"}),
            "p.jsonl:5: slot 7 is used before it is assigned");
  EXPECT_EQ(error({kMain, R"({"backward":[]})"}), "p.jsonl:5: expected a root to go backward from");
  EXPECT_EQ(error({kMain, R"({"backward":[1],"inputs":[0],"out":[7]})", kUse7}), "");
  EXPECT_EQ(error({kMain, R"({"backward":[1],"inputs":[0]})"}),
            "p.jsonl:5: expected a slot in \"out\" for the gradient of each of \"inputs\"");
  EXPECT_EQ(error({kMain, R"({"move":7})"}), "p.jsonl:5: expected \"move\": a global, not slot 7");
}

TEST(ProgramCheckTest, ASlotMayCarryOnlyAnEdge) {
  EXPECT_EQ(error({kMain, kNode7, R"({"backward":[7]})", kBody}), "");
  EXPECT_EQ(error({kMain, kNode7, kOp7, kUse7, kBody}), "");  // the tensor after the edge
  EXPECT_EQ(error({kMain, kOp7, kNode7, kUse7, kBody}), "");  // or before it
  EXPECT_EQ(error({kMain, kNode7, R"({"node":"M","id":1,"in":[7],"out":[8],"saved":[0],"body":1})",
                   kBody}),
            "");
  EXPECT_EQ(error({kMain, kNode7, kUse7, kBody}),
            "p.jsonl:6: slot 7 carries an edge and no tensor: expected a tensor");
  EXPECT_EQ(error({kMain, kNode7, R"({"view":8,"of":7,"dtype":"f32","shape":[1]})", kBody}),
            "p.jsonl:6: slot 7 carries an edge and no tensor: expected a tensor");
  EXPECT_EQ(error({kMain, kNode7, R"({"free":[7]})", kOp7, kBody}),
            "p.jsonl:7: slot 7 is assigned after its free");
}

TEST(ProgramCheckTest, NodesMatchTheirBodies) {
  EXPECT_EQ(error({kMain, R"({"node":"N","id":0,"in":[0],"out":[7],"saved":[1],"body":9})", kBody}),
            "p.jsonl:5: expected a body, but there is no code 9");
  EXPECT_EQ(error({kMain, R"({"node":"N","id":0,"in":[0],"out":[7],"saved":[1],"body":0})", kBody}),
            "p.jsonl:5: expected code 0 to be a body");
  EXPECT_EQ(
      error({kMain, R"({"node":"N","id":0,"in":[0,1],"out":[7],"saved":[1],"body":1})", kBody}),
      "p.jsonl:5: expected as many inputs as code 1 has results, 1, not 2");
  EXPECT_EQ(
      error({kMain, R"({"node":"N","id":0,"in":[0],"out":[7,8],"saved":[1],"body":1})", kBody}),
      "p.jsonl:5: expected as many outputs as code 1 has arguments, 1, not 2");
  EXPECT_EQ(error({kMain, R"({"node":"N","id":0,"in":[0],"out":[7],"body":1})", kBody}),
            "p.jsonl:5: expected as many saved tensors as code 1 has saved slots, 1, not 0");
  EXPECT_EQ(error({kMain, kNode7, kOp7, R"({"save":0,"slots":[7]})", kBody}),
            "p.jsonl:5: expected as many saved tensors as code 1 has saved slots, 1, not 2");
  EXPECT_EQ(error({kMain, kNode7, R"({"save":0,"slots":[7]})", kBody}),
            "p.jsonl:6: slot 7 carries an edge and no tensor: expected a tensor");
  EXPECT_EQ(error({kMain, kNode7, R"({"save":2,"slots":[0]})", kBody}),
            "p.jsonl:6: expected a node made before this, but there is no node 2");
  EXPECT_EQ(error({kMain, kNode7, R"({"node":"N","id":0,"in":[0],"out":[8],"saved":[1],"body":1})",
                   kBody}),
            "p.jsonl:6: node 0 is there already in this code");
}

TEST(ProgramCheckTest, CallsMatchTheirSegments) {
  const char* segment = R"({"code":1,"kind":"segment","arguments":[5],"results":[5]})";
  EXPECT_EQ(error({kMain, kOp7, kCall, segment}), "");
  EXPECT_EQ(error({kMain, R"({"call":1,"in":[],"out":[8]})", segment}),
            "p.jsonl:5: expected as many inputs as code 1 has arguments, 1, not 0");
  EXPECT_EQ(error({kMain, R"({"call":1,"in":[0],"out":[]})", segment}),
            "p.jsonl:5: expected as many outputs as code 1 has results, 1, not 0");
  EXPECT_EQ(error({kMain, R"({"call":7,"in":[],"out":[]})"}),
            "p.jsonl:5: expected a segment, but there is no code 7");
  EXPECT_EQ(error({kMain, R"({"call":1,"in":[],"out":[]})", kBody}),
            "p.jsonl:5: expected code 1 to be a segment");
  EXPECT_EQ(error({kMain, R"({"call":1,"in":[0],"out":[7]})", kOp7, segment}),
            "p.jsonl:6: slot 7 is assigned twice");
  EXPECT_EQ(error({kMain, R"({"code":1,"kind":"segment","results":[5]})"}),
            "p.jsonl:5: slot 5 is used before it is assigned");
  EXPECT_EQ(error({kMain, R"({"code":1,"kind":"segment","results":[null]})"}),
            "p.jsonl:5: expected a slot for each result of a segment");
  EXPECT_EQ(error({kMain, R"({"code":1,"kind":"segment","arguments":[5,5]})"}),
            "p.jsonl:5: slot 5 is assigned twice");
  EXPECT_EQ(error({kMain, R"({"code":1,"kind":"segment","saved":[5]})"}),
            "p.jsonl:5: expected \"saved\" only in a body");
  EXPECT_EQ(error({R"({"code":0,"kind":"main","arguments":[5]})"}),
            "p.jsonl:4: expected a main code that takes and returns nothing");
}

TEST(ProgramCheckTest, NoCallReachesItself) {
  EXPECT_EQ(error({kMain, R"({"code":1,"kind":"segment"})", R"({"call":2,"in":[],"out":[]})",
                   R"({"code":2,"kind":"segment"})", R"({"call":1,"in":[],"out":[]})"}),
            "p.jsonl:8: code 1 calls itself");
}

// A long chain of calls once ended the checker's stack, whichever end of it came first in the file.
TEST(ProgramCheckTest, CallsAreNotTooDeep) {
  const auto chain = [](int codes, bool callers_first) {
    std::string text = kHead;
    for (int code = 0; code < codes; ++code) {
      const int next = callers_first ? code + 1 : code - 1;
      const bool is_main = callers_first ? code == 0 : next == codes - 2;
      text += "{\"code\":" + std::to_string(code) + ",\"kind\":\"";
      text += is_main ? "main\"}\n" : "segment\"}\n";
      if (next < 0 || next == codes) continue;
      text += "{\"call\":" + std::to_string(next) + ",\"in\":[],\"out\":[]}\n";
    }
    return error_of([&] { parse(text); });
  };
  for (const bool callers_first : {false, true}) {
    EXPECT_EQ(chain(200, callers_first), "");
    for (const int codes : {201, 20'000}) {
      EXPECT_NE(chain(codes, callers_first).find("expected codes nested at most 200 deep"),
                std::string::npos);
    }
  }
}

TEST(ProgramCheckTest, WhatASegmentNeedsItsCallersHave) {
  const char* reads = R"({"code":1,"kind":"segment","arguments":[5],"results":[5]})";
  const char* op = R"({"op":"b","in":[5],"out":[]})";
  const char* body = R"({"code":2,"kind":"body","arguments":[5],"saved":[6],"results":[5]})";
  const char* node = R"({"node":"N","id":0,"in":[0],"out":[7],"saved":[1],"body":2})";
  EXPECT_EQ(error({kMain, node, kCall, reads, body}), "");  // an edge passes through
  EXPECT_EQ(error({kMain, node, kCall, R"({"op":"b","in":[8],"out":[]})", reads, body}),
            "p.jsonl:7: slot 8 carries an edge and no tensor: expected a tensor");
  EXPECT_EQ(error({kMain, node, kCall, reads, op, body}),
            "p.jsonl:6: slot 7 carries an edge and no tensor: expected a tensor");
}

TEST(ProgramCheckTest, ViewsLieWithinTheirStorage) {
  const auto view = [](const char* shape, const char* more) {
    return std::string(R"({"view":8,"of":7,"dtype":"f32","shape":)") + shape + more + "}";
  };
  EXPECT_EQ(error({kMain, kOp7, view("[16]", "").c_str()}), "");
  EXPECT_EQ(error({kMain, kOp7, view("[9]", R"(,"offset":7)").c_str()}), "");
  EXPECT_EQ(error({kMain, kOp7, view("[9]", R"(,"offset":8)").c_str()}),
            "p.jsonl:6: expected a view within its storage of 64 bytes, not up to byte 68");
  EXPECT_EQ(error({kMain, kOp7, view("[2]", R"(,"strides":[16])").c_str()}),
            "p.jsonl:6: expected a view within its storage of 64 bytes, not up to byte 68");
  EXPECT_EQ(error({kMain, R"({"view":8,"of":0,"dtype":"f64","shape":[9]})"}),
            "p.jsonl:5: expected a view within its storage of 64 bytes, not up to byte 72");
  // Through a view, and through a call in both directions.
  EXPECT_EQ(error({kMain, kOp7, view("[1]", "").c_str(),
                   R"({"view":9,"of":8,"dtype":"f32","shape":[16]})"}),
            "");
  const char* segment = R"({"code":1,"kind":"segment","arguments":[5],"results":[6]})";
  const char* inner = R"({"view":6,"of":5,"dtype":"f32","shape":[17]})";
  EXPECT_EQ(error({kMain, kOp7, kCall, segment, inner}),
            "p.jsonl:6: expected what the segment views within its storage of 64 bytes, not up to "
            "byte 68");
  EXPECT_EQ(error({kMain, kOp7, kCall, R"({"view":9,"of":8,"dtype":"f32","shape":[17]})", segment,
                   R"({"view":6,"of":5,"dtype":"f32","shape":[1]})"}),
            "p.jsonl:7: expected a view within its storage of 64 bytes, not up to byte 68");
}

TEST(ProgramCheckTest, WritesArePositionsOfInputs) {
  EXPECT_EQ(error({kMain, R"({"op":"a_","in":[1],"out":[],"writes":[0]})"}), "");
  EXPECT_EQ(error({kMain, R"({"op":"a_","in":[1],"out":[],"writes":[1]})"}),
            "p.jsonl:5: expected \"writes\" to be positions in \"in\", whose length is 1");
}

TEST(ProgramCheckTest, AliasesFitTheirGlobal) {
  const auto alias = [](const char* dtype, const char* rest) {
    return std::string(R"({"global":2,"kind":"buffer","name":"t","dtype":")") + dtype + "\"," +
           rest + "}";
  };
  EXPECT_EQ(error({alias("f32", R"("shape":[4,4],"strides":[1,4],"alias":0)").c_str(), kMain}), "");
  EXPECT_EQ(error({alias("bf16", R"("shape":[4,4],"alias":0)").c_str(), kMain}),
            "p.jsonl:4: expected the type of an alias to fit that of global 0: its dtype, within "
            "its bytes");
  EXPECT_EQ(error({alias("f32", R"("shape":[17],"alias":0)").c_str(), kMain}),
            "p.jsonl:4: expected the type of an alias to fit that of global 0: its dtype, within "
            "its bytes");
  EXPECT_EQ(error({alias("f32", R"("shape":[4,4],"alias":2)").c_str(), kMain}),
            "p.jsonl:4: expected \"alias\": an earlier global");
}

TEST(ProgramCheckTest, RegionsNest) {
  const char* enter = R"({"enter":"m"})";
  const char* leave = R"({"leave":"m"})";
  const char* begin = R"({"exclude":"begin"})";
  const char* end = R"({"exclude":"end"})";
  EXPECT_EQ(error({kMain, enter, begin, end, leave}), "");
  EXPECT_EQ(error({kMain, leave}), "p.jsonl:5: module m ends here, but it did not begin");
  EXPECT_EQ(error({kMain, end}), "p.jsonl:5: exclude ends here, but it did not begin");
  EXPECT_EQ(error({kMain, enter, R"({"leave":"n"})"}),
            "p.jsonl:6: expected the end of module m, not of module n");
  EXPECT_EQ(error({kMain, enter, begin, leave}),
            "p.jsonl:7: expected the end of exclude, not of module m");
  EXPECT_EQ(error({kMain, begin}),
            "p.jsonl:5: expected the end of exclude before the end of its code");
  EXPECT_EQ(error({kMain, enter, R"({"raise":"boom"})"}), "");  // user code left by an exception
}

TEST(ProgramCheckTest, AWhenHoldsStatementsThatAreThere) {
  const char* one = R"({"when":"recomputing","count":1})";
  EXPECT_EQ(error({kMain, kOp7, one, kUse7}), "");
  EXPECT_EQ(error({kMain, R"({"when":"first","count":0})"}), "");
  EXPECT_EQ(error({kMain, one}),
            "p.jsonl:5: expected \"count\": at most the 0 statements after it, not 1");
  EXPECT_EQ(error({kMain, kOp7, R"({"when":"first","count":2})", kUse7}),
            "p.jsonl:6: expected \"count\": at most the 1 statements after it, not 2");
  EXPECT_EQ(error({kMain, kOp7, R"({"when":"first","count":2})", one, kUse7}),
            "p.jsonl:7: expected no \"when\" inside another");
}

TEST(ProgramCheckTest, AWhenCutsNoRegion) {
  const char* enter = R"({"enter":"m"})";
  const char* leave = R"({"leave":"m"})";
  const char* first = R"({"when":"first","count":1})";
  const char* raise = R"({"raise":"boom"})";
  EXPECT_EQ(error({kMain, enter, first, kOp7, leave}), "");
  EXPECT_EQ(error({kMain, R"({"when":"recomputing","count":2})", enter, leave}), "");
  EXPECT_EQ(error({kMain, first, enter, first, leave}),
            "p.jsonl:6: expected the end of module m before the end of its when");
  EXPECT_EQ(error({kMain, R"({"exclude":"begin"})", first, R"({"exclude":"end"})"}),
            "p.jsonl:7: exclude began before the \"when\" that it ends in: expected both inside "
            "it, or neither");
  EXPECT_EQ(error({kMain, R"({"when":"recomputing","count":1})", enter}),
            "p.jsonl:6: expected the end of module m before the end of its when, when this runs "
            "again");
  // What raises under a when is not sure to raise.
  EXPECT_EQ(error({kMain, R"({"when":"first","count":2})", enter, raise}), "");
  EXPECT_EQ(error({kMain, enter, first, raise, leave}), "");
  EXPECT_EQ(error({kMain, enter, first, raise}),
            "p.jsonl:7: expected the end of module m before the end of its code");
}

TEST(ProgramCheckTest, SlotsAreRightInEachWayThatACodeRuns) {
  const char* first = R"({"when":"first","count":1})";
  const char* again = R"({"when":"recomputing","count":1})";
  EXPECT_EQ(error({kMain, first, kOp7, again, kOp7, kUse7}), "");
  EXPECT_EQ(error({kMain, first, kOp7, first, kUse7}), "");
  EXPECT_EQ(error({kMain, again, kOp7, kUse7}), "p.jsonl:7: slot 7 is used before it is assigned");
  EXPECT_EQ(error({kMain, first, kOp7, kUse7}),
            "p.jsonl:7: slot 7 is used before it is assigned, when this runs again");
  EXPECT_EQ(error({kMain, kOp7, again, kOp7}),
            "p.jsonl:7: slot 7 is assigned twice, when this runs again");
  EXPECT_EQ(error({kMain, kOp7, first, R"({"free":[7]})", kUse7}),
            "p.jsonl:8: slot 7 is used after its free");
  EXPECT_EQ(error({kMain, kNode7, kOp7, again, R"({"save":0,"slots":[7]})", kBody}),
            "p.jsonl:5: expected as many saved tensors as code 1 has saved slots, 1, not 2, when "
            "this runs again");
  // Through a call: what it needs when it runs again, its caller has.
  const char* call = R"({"call":1,"in":[7],"out":[8],"recompute":"checkpoint"})";
  const char* segment = R"({"code":1,"kind":"segment","arguments":[5],"results":[6]})";
  const char* view = R"({"view":6,"of":5,"dtype":"f32","shape":[17]})";
  EXPECT_EQ(error({kMain, kOp7, call, segment, first,
                   R"({"view":6,"of":5,"dtype":"f32","shape":[1]})", again, view}),
            "p.jsonl:6: expected what the segment views within its storage of 64 bytes, not up to "
            "byte 68, when this runs again");
}

TEST(ProgramCheckTest, AnyCodeMayCallACheckpoint) {
  const char* call = R"({"call":1,"in":[0],"out":[8],"recompute":"reentrant"})";
  const char* segment = R"({"code":1,"kind":"segment","arguments":[5],"results":[5]})";
  const char* outer = R"({"code":2,"kind":"segment","arguments":[],"results":[8]})";
  const char* body = R"({"code":3,"kind":"body","arguments":[5],"saved":[],"results":[8]})";
  EXPECT_EQ(error({kMain, call, segment, outer, call, body, call}), "");
}

TEST(ProgramCheckTest, ACheckpointCapturesSomeOfWhatItIsHanded) {
  const auto call = [](const std::string& options) {
    const std::string line = R"({"call":1,"in":[0,1],"out":[])" + options + "}";
    return error(
        {kMain, line.c_str(), R"({"code":1,"kind":"segment","arguments":[5,6],"results":[]})"});
  };
  EXPECT_EQ(call(R"(,"recompute":"checkpoint","captured":2)"), "");
  EXPECT_EQ(call(R"(,"recompute":"checkpoint","captured":3)"),
            "p.jsonl:5: expected at most the 2 of \"in\" to be captured, not 3");
  EXPECT_EQ(call(R"(,"recompute":"reentrant","captured":1)"),
            "p.jsonl:5: expected \"captured\" only with \"recompute\":\"checkpoint\"");
}

TEST(ProgramCheckTest, AMarkedCallWasHandedTensors) {
  EXPECT_EQ(error({kMain, kOp7, R"({"enter":"m","arguments":[1,7,7]})", R"({"leave":"m"})"}), "");
  EXPECT_EQ(error({kMain, R"({"enter":"m","arguments":[7]})", R"({"leave":"m"})"}),
            "p.jsonl:5: slot 7 is used before it is assigned");
}

TEST(ProgramCheckTest, AProgramMadeInMemoryNeedsAMainAndTypes) {
  Program program;
  EXPECT_EQ(error_of([&] { check_program(program, "p"); }), "p: expected a code of kind main");
  program.codes.resize(1);
  EXPECT_EQ(error_of([&] { check_program(program, "p"); }), "p: expected a code of kind main");
  program.codes[0].kind = CodeKind::kMain;
  EXPECT_EQ(error_of([&] { check_program(program, "p"); }), "");
  program.codes[0].statements.push_back({.action = View{.out = 1, .of = 0, .type = 3}, .line = 0});
  program.globals.resize(1);
  EXPECT_EQ(error_of([&] { check_program(program, "p"); }),
            "p: expected a type that the program lists, but there is no type 0");
}

}  // namespace
}  // namespace ferry
