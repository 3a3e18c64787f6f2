#include "formats/file_kind.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "formats/decision_log.h"
#include "formats/memory_snapshot.h"
#include "tests/formats/sample.h"

namespace ferry {
namespace {

using namespace std::string_literals;
using testing::error_of;

TEST(FileKind, IsToldByTheBeginning) {
  const struct {
    FileKind kind;
    std::string text;
  } cases[] = {
      {FileKind::kEmpty, ""},
      {FileKind::kEmpty, " \n\t\r\n"},
      {FileKind::kCompressed, "\x1f\x8b\x08"},
      {FileKind::kCompressed,
       "\xfd"
       "7zXZ"},
      {FileKind::kZip, "PK\x03\x04"},
      {FileKind::kPage, "<!DOCTYPE html><html>"},
      {FileKind::kPickle, "\x80\x04}."},
      {FileKind::kPickle, to_pickle(MemorySnapshot())},
      {FileKind::kProfile, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": ["},
      {FileKind::kProfile, R"({"displayTimeUnit":"ms","traceEvents":[]})"},
      {FileKind::kProfile, "[\n {\"name\":\"a\",\"ph\":\"X\"}"},
      {FileKind::kProgram, testing::kSample},
      {FileKind::kProgram,
       "\xef\xbb\xbf"
       R"({"name":"p","ferry":"program"})"},
      {FileKind::kLog, R"({"stream":0,"op":"kernel","reads":[],"writes":[]})"},
      {FileKind::kHazard, R"({"ferry":"hazard","schema":1})"},
      {FileKind::kPlan, "{\n  \"ferry\": \"plan\",\n"},
      {FileKind::kPipelinePlan, R"({"ferry":"pipeline plan"})"},
      {FileKind::kDecisions, decision_header(CoreOptions())},
      {FileKind::kKernelTimes, R"({"ferry":"kernel times","schema":1})"},
      {FileKind::kTraining, R"({"ferry":"training","schema":1})"},
      {FileKind::kCampaign, "{\n  \"campaign\": {\"seed\":0}"},
      {FileKind::kResults, R"({"ferry":"0.9","program":"gpt2","budget":"1GiB","outcome":"fits"})"},
      {FileKind::kToml, "# a card\n\nmemory = \"1GiB\"\n"},
      {FileKind::kToml, "a.b=1"},
      {FileKind::kOther, "import torch\n"},
      {FileKind::kOther, "a == b"},
      {FileKind::kOther, "{}"},
      {FileKind::kOther, R"({"schema":1,"rows":[]})"},
      {FileKind::kOther, R"({"op":"aten.mm","in":[],"out":[]})"},
      {FileKind::kOther, R"([{"a":1}])"},
      {FileKind::kOther, "[1]"},
      {FileKind::kOther, R"({"ferry":7)"},
      {FileKind::kOther, "\x80"},
  };
  std::set<FileKind> seen;
  for (const auto& [kind, text] : cases) {
    EXPECT_EQ(kind_of(text), kind) << text;
    seen.insert(kind);
  }
  EXPECT_EQ(seen.size(), kFileKinds) << "each kind has its case";
}

TEST(FileKind, AnotherOneIsRefusedWithWhoReadsIt) {
  const auto told = [](const std::string& text) {
    return error_of([&] { refuse_other_kinds(text, "f", {FileKind::kPlan, FileKind::kHazard}); });
  };
  EXPECT_EQ(told(testing::kSample),
            "f: expected a plan, and this is a program: `ferry plan`, `ferry simulate` and `ferry "
            "replay` read it");
  EXPECT_EQ(told(""), "f: expected a plan, and this is empty: was it written to its end?");
  EXPECT_EQ(told(R"({"ferry":"hazard"})"), "");
  EXPECT_EQ(told("what nobody knows"), "") << "who reads it says what is wrong";
}

// What begins with a megabyte that no reader asks for.
TEST(FileKind, AFileIsToldByItsBeginning) {
  const std::string path = ::testing::TempDir() + "/file_kind_test";
  const auto told = [&path](const std::string& text) {
    std::ofstream(path) << text;
    return error_of([&] { refuse_other_kinds(path, {FileKind::kPlan}); });
  };
  EXPECT_NE(told("{\"traceEvents\":[\"" + std::string(1 << 20, 'x') + "\"]}").find("profiler"),
            std::string::npos);
  EXPECT_EQ(told("{\"x\":\"" + std::string(1 << 20, 'x') + "\",\"ferry\":\"program\"}"), "");
  std::remove(path.c_str());
  EXPECT_EQ(error_of([&] { refuse_other_kinds(path, {FileKind::kPlan}); }), "")
      << "it is not there";
}

}  // namespace
}  // namespace ferry
