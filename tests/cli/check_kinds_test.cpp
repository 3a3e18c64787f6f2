// Every kind of file given to every command that reads another: it is called by its name, with the
// command that reads it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/decision_log.h"
#include "formats/file_kind.h"
#include "formats/memory_snapshot.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

using namespace std::string_literals;

class CheckKindsTest : public PlanFolder {
 protected:
  CheckKindsTest() {
    write("pickle", to_pickle(MemorySnapshot()));
    write("profile", R"({"schemaVersion":1,"traceEvents":[]})");
    write("log", R"({"op":"kernel","stream":0,"reads":["x"],"writes":[]})");
    write("hazard", R"({"ferry":"hazard","schema":1})");
    write("plan", R"({"ferry":"plan","schema":1})");
    write("staged", R"({"ferry":"pipeline plan","schema":1})");
    write("decisions", decision_header(CoreOptions()));
    write("times", R"({"ferry":"kernel times","schema":1,"device":"x"})");
    write("gz", "\x1f\x8b\x08");
    write("zip", "PK\x03\x04");
    write("page", "<html></html>");
    write("empty", "");
    write("campaign", R"({"campaign":{"seed":0}})");
    write("results", R"({"ferry":"0.9","budget":"1GiB"})");
    write("training", R"({"ferry":"training"})");
  }
};

struct Reads {
  const char* command;  // in which % is the file
  const char* expected;
  std::vector<std::string> kinds;  // that it takes, or says more of
};

TEST_F(CheckKindsTest, AFileOfAnotherKindIsCalledByItsName) {
  const std::vector<std::pair<std::string, FileKind>> files = {
      {"pickle", FileKind::kPickle},
      {"profile", FileKind::kProfile},
      {"log", FileKind::kLog},
      {"hazard", FileKind::kHazard},
      {"plan", FileKind::kPlan},
      {"staged", FileKind::kPipelinePlan},
      {"decisions", FileKind::kDecisions},
      {"times", FileKind::kKernelTimes},
      {"gz", FileKind::kCompressed},
      {"zip", FileKind::kZip},
      {"page", FileKind::kPage},
      {"empty", FileKind::kEmpty},
      {"campaign", FileKind::kCampaign},
      {"results", FileKind::kResults},
      {"training", FileKind::kTraining},
      {"chain.jsonl", FileKind::kProgram},
  };
  const std::vector<Reads> commands = {
      {"check ./%", "a stream log", {"log", "hazard", "empty"}},
      {"plan ./% --card tiny.toml", "a program", {"chain.jsonl"}},
      {"simulate ./% --card tiny.toml --policy keep", "a program", {"chain.jsonl"}},
      {"report ./% --card tiny.toml -o r.html", "a program", {"chain.jsonl"}},
      {"replay ./% --decisions decisions", "a program", {"chain.jsonl", "pickle"}},
      {"replay chain.jsonl --decisions ./%", "a decision log", {"decisions"}},
      {"simulate chain.jsonl --card tiny.toml --plan ./%", "a plan", {"plan", "staged"}},
      {"replay chain.jsonl --decisions decisions --plan ./%", "a plan", {"plan", "staged"}},
      {"plan chain.jsonl --card tiny.toml --times ./%",
       "a table of kernel times",
       {"times", "profile"}},
  };
  for (const Reads& reads : commands) {
    for (const auto& [file, kind] : files) {
      if (std::find(reads.kinds.begin(), reads.kinds.end(), file) != reads.kinds.end()) continue;
      std::string command = reads.command;
      command.replace(command.find('%'), 1, file);
      const Result result = ferry(command);
      EXPECT_EQ(result.code, kUsage) << command;
      const std::string told = "expected " + std::string(reads.expected) + ", and this is " +
                               std::string(in_words(kind)) + ": " + std::string(read_by(kind));
      EXPECT_NE(result.err.find(told), std::string::npos) << command << ": " << result.err;
    }
  }
}

}  // namespace
}  // namespace ferry::cli
