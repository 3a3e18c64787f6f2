// Small files that would keep Ferry busy for years are refused, with the line that is to blame.
#include "formats/program_work.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;
using testing::parse;

const std::string kHead =
    "{\"ferry\":\"program\",\"schema\":1,\"name\":\"p\"}\n"
    "{\"code\":0,\"kind\":\"main\"}\n"
    "{\"call\":1,\"in\":[],\"out\":[]}\n";

// Codes that run the next one twice; the first one's lines are 4, 5 and 6.
std::string doubling(int codes, const std::string& kind, const std::string& run) {
  std::string text = kHead;
  for (int code = 1; code <= codes; ++code) {
    text += "{\"code\":" + std::to_string(code) + ",\"kind\":\"" + (code == 1 ? "segment" : kind) +
            "\"}\n";
    for (int i = 0; i < 2 && code < codes; ++i) {
      std::string line = run;
      line.replace(line.find("NEXT"), 4, std::to_string(code + 1));
      if (const auto id = line.find("ID"); id != std::string::npos) {
        line.replace(id, 2, std::to_string(i));
      }
      text += line + "\n";
    }
  }
  return error_of([&] { parse(text); });
}

const std::string kCall = R"({"call":NEXT,"in":[],"out":[]})";
const std::string kNode = R"({"node":"N","id":ID,"in":[],"out":[],"body":NEXT})";

// Forty segments that each call the next one twice once ran until somebody stopped them.
TEST(ProgramWorkTest, CallsThatDoubleAreRefused) {
  EXPECT_EQ(doubling(20, "segment", kCall), "");
  EXPECT_NE(doubling(40, "segment", kCall).find("expected a code that names at most 268435456"),
            std::string::npos);
  EXPECT_EQ(doubling(28, "segment", kCall).substr(0, 10), "p.jsonl:6:");  // the second call of two
}

TEST(ProgramWorkTest, SoAreBodiesThatDouble) {
  EXPECT_EQ(doubling(20, "body", kNode), "");
  EXPECT_NE(doubling(40, "body", kNode).find("expected a code that names at most"),
            std::string::npos);
}

// Each body's node has the next body: the reader followed them as deep as they went.
TEST(ProgramWorkTest, BodiesAreNotTooDeep) {
  const auto chain = [](int codes) {
    std::string text = kHead + "{\"code\":1,\"kind\":\"segment\"}\n";
    for (int code = 2; code <= codes; ++code) {
      text += R"({"node":"N","id":0,"in":[],"out":[],"body":)" + std::to_string(code) + "}\n";
      text += "{\"code\":" + std::to_string(code) + ",\"kind\":\"body\"}\n";
    }
    return error_of([&] { parse(text); });
  };
  EXPECT_EQ(chain(199), "");
  for (const int codes : {201, 20'000}) {
    EXPECT_NE(chain(codes).find("expected codes nested at most 200 deep"), std::string::npos);
  }
}

TEST(ProgramWorkTest, ABodyMayMakeNodesOfItsOwnKind) {
  EXPECT_EQ(error_of([] {
              parse(kHead + R"({"code":1,"kind":"segment"}
{"node":"N","id":0,"in":[],"out":[],"body":2}
{"code":2,"kind":"body"}
{"node":"N","id":0,"in":[],"out":[],"body":2}
)");
            }),
            "");
}

}  // namespace
}  // namespace ferry
