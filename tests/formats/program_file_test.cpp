#include "formats/program_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;
using testing::kSample;
using testing::parse;

const std::string kHeader = R"({"ferry":"program","schema":1,"name":"p"})"
                            "\n";
const std::string kMain = kHeader + R"({"code":0,"kind":"main"})"
                                    "\n";

std::string error(const std::string& text) {
  return error_of([&] { parse(text); });
}

TEST(ProgramFileTest, WritingWhatWasReadGivesTheSameBytes) {
  EXPECT_EQ(to_text(parse(kSample)), kSample);
}

TEST(ProgramFileTest, DefaultsAreLeftOutAndKeysPutInOrder) {
  const std::string loose =
      kHeader + "\n" +
      R"( { "kind" : "main", "code" : 0 } )"
      "\r\n"
      R"({"out":[{"shape":[2,3],"slot":0,"strides":[3,1],"dtype":"f32","offset":0}],)"
      R"("flops":0,"in":[],"op":"aten.zeros"})"
      "\n"
      R"({"backward":[0],"retain_graph":false})";
  EXPECT_EQ(to_text(parse(loose)),
            kMain + R"({"op":"aten.zeros","in":[],"out":[{"slot":0,"dtype":"f32","shape":[2,3]}]})"
                    "\n"
                    R"({"backward":[0]})"
                    "\n");
}

TEST(ProgramFileTest, LinesAreThoseOfTheFile) {
  const Program program = parse(kSample);
  EXPECT_EQ(program.globals[2].line, 4);
  EXPECT_EQ(program.codes[1].line, 19);
  EXPECT_EQ(program.codes[1].statements[0].line, 20);
}

TEST(ProgramFileTest, EqualTypesAreOne) { EXPECT_EQ(parse(kSample).types.size(), 3u); }

TEST(ProgramFileTest, TheDigestIsTheTexts) {
  const std::string sample = kSample;
  EXPECT_EQ(digest(parse(sample)), digest(parse(sample + "\n\n")));
  std::string other = sample;
  other.replace(other.find("boom"), 4, "bang");
  EXPECT_NE(digest(parse(sample)), digest(parse(other)));
  EXPECT_EQ(digest(parse(sample)).size(), 16u);
  EXPECT_EQ(digest(parse(kMain)), "f3b185f0e7253130");  // pinned: plans refer to it
}

// A plan is a step's, and the step is the same however long it took where it was captured.
TEST(ProgramFileTest, TheDigestIsWithoutMeasuredTimes) {
  Program timed = parse(kSample);
  std::size_t ops = 0;
  for (Code& code : timed.codes) {
    for (Statement& statement : code.statements) {
      auto* const op = std::get_if<Op>(&statement.action);
      if (op) op->measured_ns = 1000 + static_cast<std::int64_t>(++ops);
    }
  }
  ASSERT_GT(ops, 0u);
  EXPECT_NE(to_text(timed), to_text(parse(kSample)));
  EXPECT_EQ(digest(timed), digest(parse(kSample)));
}

TEST(ProgramFileTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error(""), "p.jsonl:1: expected the header of a program, found nothing");
  EXPECT_EQ(error(kHeader), "p.jsonl:1: expected a code of kind main before the end");
  EXPECT_EQ(error("[]"), "p.jsonl:1: expected a JSON object");
  EXPECT_EQ(error(R"({"ferry":"program","schema":2,"name":"p"})"),
            "p.jsonl:1: expected \"schema\": 1");
  EXPECT_EQ(error(kHeader + R"({"stream":0})"),
            "p.jsonl:2: expected a global or a code before the first statement");
  EXPECT_EQ(error(kMain + "{\"free\":[7]"),
            "p.jsonl:3: expected whole JSON, but the text ends: is it truncated?");
  EXPECT_EQ(error(kMain + R"({"flee":[7]})"),
            "p.jsonl:3: expected a global, a code or a statement");
  EXPECT_EQ(error(kMain + R"({"free":[],"free":[]})"), "p.jsonl:3: key \"free\" is there twice");
  EXPECT_EQ(error(kMain + R"({"free":[-1]})"),
            "p.jsonl:3: expected \"free\": a list of numbers from 0");
  EXPECT_EQ(error(kMain + R"({"free":[4294967295]})"),
            "p.jsonl:3: expected \"free\": a list of numbers from 0");
  EXPECT_EQ(error(kMain + R"({"free":7})"),
            "p.jsonl:3: expected \"free\": a list of numbers from 0");
  EXPECT_EQ(error(kMain + R"({"stream":1.0})"),
            "p.jsonl:3: expected \"stream\": an integer from 0 to 1023");
  EXPECT_EQ(error(kMain + R"({"sync":[0]})"),
            "p.jsonl:3: expected \"sync\": [from, to], both below 1024");
  EXPECT_EQ(error(kMain + R"({"exclude":"middle"})"),
            "p.jsonl:3: expected \"exclude\": \"begin\" or \"end\"");
  EXPECT_EQ(error(kMain + R"({"op":"a","in":[]})"), "p.jsonl:3: expected a key \"out\"");
  EXPECT_EQ(error(kMain + R"({"op":"a","in":[],"out":[],"flops":18446744073709551615})"),
            "p.jsonl:3: expected \"flops\": an integer from 0 to 1000000000000000000");
  EXPECT_EQ(error(kMain + R"({"op":"a","in":[],"out":[{"slot":0,"dtype":"f33","shape":[]}]})"),
            "p.jsonl:3: expected \"dtype\": one of f64 f32 bf16 f16 f8 i64 i32 i16 i8 u8 bool");
  EXPECT_EQ(
      error(kMain +
            R"({"op":"a","in":[],"out":[{"slot":0,"dtype":"f32","shape":[2],"strides":[]}]})"),
      "p.jsonl:3: expected \"shape\": sizes, strides and offset of a tensor: as many strides "
      "as sizes expected");
}

TEST(ProgramFileTest, AProductMustHaveTheFlopsThatItsShapeSays) {
  const auto refusal = [](const std::string& fields) {
    return error(kMain + R"({"op":"a","in":[],"out":[],)" + fields + "}");
  };
  EXPECT_EQ(refusal(R"("flops":120,"matmul":[1,3,4,5])"), "");
  EXPECT_EQ(refusal(R"("flops":121,"matmul":[1,3,4,5])"),
            "p.jsonl:3: expected \"matmul\": products of as many FLOPs as \"flops\" says");
  const std::string sizes =
      "p.jsonl:3: expected \"matmul\": [batch, m, n, k], or a list of two of these, each from 1 to "
      "2147483648";
  EXPECT_EQ(refusal(R"("flops":0,"matmul":[1,3,4,0])"), sizes);
  EXPECT_EQ(refusal(R"("flops":24,"matmul":[1,3,4])"), sizes);
  EXPECT_EQ(refusal(R"("flops":24,"matmul":[1,3,4,-1])"), sizes);
  EXPECT_EQ(refusal(R"("flops":24,"matmul":4)"), sizes);
  EXPECT_EQ(refusal(R"("flops":24,"matmul":[[1,3,4,1],2])"), sizes);
  EXPECT_EQ(refusal(R"("flops":144,"matmul":[[1,3,4,5],[1,3,4,1]])"), "");
  EXPECT_EQ(refusal(R"("flops":6,"matmul":[[1,1,1,1],[1,1,1,1],[1,1,1,1]])"),
            "p.jsonl:3: expected \"matmul\": at most 2 products");
  EXPECT_EQ(refusal(R"("flops":120,"matmul":[1,3,4,5],"aligned":3)"),
            "p.jsonl:3: expected \"aligned\": 2, 4, 8 or 16 bytes");
  EXPECT_EQ(refusal(R"("aligned":3)"), "") << "of no product";
  EXPECT_EQ(refusal(R"("kernels":0)"),
            "p.jsonl:3: expected \"kernels\": an integer from 1 to 1000");
}

TEST(ProgramFileTest, ACheckpointsOptionsAreWrittenWhereTheyAreNotTheDefaults) {
  const std::string call = R"({"call":1,"in":[],"out":[])";
  const std::string segment = R"({"code":1,"kind":"segment","arguments":[],"results":[]})"
                              "\n";
  const auto round_trip = [&](const std::string& options) {
    return to_text(parse(kMain + call + options + "}\n" + segment));
  };
  for (const char* options :
       {"", R"(,"recompute":"checkpoint")", R"(,"recompute":"replay")",
        R"(,"recompute":"reentrant","preserve_rng":false)",
        R"(,"recompute":"checkpoint","early_stop":false,"determinism_check":false)"}) {
    EXPECT_EQ(round_trip(options), kMain + call + options + "}\n" + segment);
  }
  EXPECT_EQ(round_trip(R"(,"recompute":"checkpoint","early_stop":true,"preserve_rng":true)"),
            round_trip(R"(,"recompute":"checkpoint")"));
  // Without a recompute, or in a replay, the options mean nothing.
  EXPECT_EQ(round_trip(R"(,"early_stop":7)"), round_trip(""));
  EXPECT_EQ(round_trip(R"(,"recompute":"replay","early_stop":7)"),
            round_trip(R"(,"recompute":"replay")"));
  Program program = parse(kMain + call + "}\n" + segment);
  std::get<Call>(program.codes[0].statements[0].action).early_stop = false;
  EXPECT_EQ(to_text(program), round_trip(""));
}

TEST(ProgramFileTest, BadWordsAreRefusedWithThoseThatWereExpected) {
  const std::string call = kMain + R"({"call":1,"in":[],"out":[])";
  EXPECT_EQ(error(call + R"(,"recompute":"sometimes"})"),
            "p.jsonl:3: expected \"recompute\": \"checkpoint\", \"reentrant\" or \"replay\"");
  EXPECT_EQ(error(call + R"(,"recompute":true})"), "p.jsonl:3: expected \"recompute\": a string");
  EXPECT_EQ(error(call + R"(,"recompute":"checkpoint","early_stop":0})"),
            "p.jsonl:3: expected \"early_stop\": true or false");
  EXPECT_EQ(error(kMain + R"({"op":"a","in":[],"out":[],"random":1})"),
            "p.jsonl:3: expected \"random\": true or false");
  EXPECT_EQ(error(kMain + R"({"op":"a","in":[],"out":[],"once":1})"),
            "p.jsonl:3: expected \"once\": true or false");
  EXPECT_EQ(error(kMain + R"({"ambient":"autocast"})"),
            "p.jsonl:3: expected \"ambient\": an integer from 0 to 4294967294");
  EXPECT_EQ(error(kMain + R"({"when":"again","count":1})"),
            "p.jsonl:3: expected \"when\": \"first\" or \"recomputing\"");
  EXPECT_EQ(error(kMain + R"({"when":"first"})"), "p.jsonl:3: expected a key \"count\"");
}

TEST(ProgramFileTest, NumbersGoUpByOne) {
  EXPECT_EQ(error(kHeader + R"({"global":1,"kind":"input","name":"x","dtype":"f32","shape":[]})"),
            "p.jsonl:2: expected \"global\": the next number, 0");
  EXPECT_EQ(error(kMain + R"({"code":0,"kind":"body"})"),
            "p.jsonl:3: expected \"code\": the next number, 1");
  EXPECT_EQ(error(kMain + R"({"code":1,"kind":"main"})"),
            "p.jsonl:3: expected \"kind\": segment or body: there is a main already");
  EXPECT_EQ(error(kMain + R"({"code":1,"kind":"bode"})"),
            "p.jsonl:3: expected \"kind\": one of main, segment, body");
  EXPECT_EQ(error(kMain + R"({"global":0,"kind":"input","name":"x","dtype":"f32","shape":[]})"),
            "p.jsonl:3: expected the globals before the first code");
}

// Cut anywhere inside a line: refused. Cut between lines: refused, or a program that is whole.
TEST(ProgramFileTest, ATruncatedFileIsRefusedOrWhole) {
  const std::string sample = kSample;
  int whole = 0;
  for (std::size_t cut = 0; cut < sample.size(); ++cut) {
    const std::string text = sample.substr(0, cut);
    const bool between = cut == 0 || sample[cut] == '\n' || sample[cut - 1] == '\n';
    const std::string message = error(text);
    if (message.empty()) {
      ++whole;
      EXPECT_TRUE(between) << text;
      EXPECT_EQ(to_text(parse(text)), text.back() == '\n' ? text : text + "\n");
    } else {
      EXPECT_EQ(message.rfind("p.jsonl:", 0), 0u) << message;
    }
  }
  // After main, its stream and its sync, with and without the end of line; and the whole sample.
  EXPECT_EQ(whole, 7);
}

TEST(ProgramFileTest, AFileRoundTrips) {
  const auto path = std::filesystem::path(::testing::TempDir()) /
                    ("ferry_program_" + std::to_string(::getpid()) + ".jsonl");
  write_program(path, parse(kSample));
  EXPECT_EQ(to_text(load_program(path)), kSample);
  EXPECT_EQ(read_program_header(path).name, "sample");
  EXPECT_EQ(read_program_header(path).about[1].second, "8");
  std::filesystem::remove(path);
  EXPECT_EQ(error_of([&] { load_program(path); }),
            path.string() + ": cannot read: No such file or directory");
}

}  // namespace
}  // namespace ferry
