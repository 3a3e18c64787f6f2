// `ferry sweep` as its users meet it: the results file, going on from it, and what is refused.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/sweep/results_file.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::string kSweep = R"(programs = ["chain.jsonl", "blocks.jsonl"]
hardware = ["tiny.toml"]
budgets = ["card", "2%"]
policies = ["keep", "offload", "mixed"]
)";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class SweepCommandTest : public PlanFolder {
 protected:
  SweepCommandTest() { write("s.toml", kSweep); }

  std::string swept(const std::string& options = "") const {
    result_ = ferry("sweep s.toml -o r.jsonl " + options);
    return read("r.jsonl");
  }

  mutable Result result_;
};

TEST_F(SweepCommandTest, ThePictureIsOfTheSameResults) {
  swept("--html p.html");
  const std::string page = read("p.html");
  for (const std::string& line : lines_of(read("r.jsonl"))) {
    const Json item = Json::parse(line);
    const std::string way = "<title>tiny.toml, budget " + item["budget"].get<std::string>() + ", " +
                            item["policy"].get<std::string>() + ": ";
    const std::size_t begin = page.find("<h2>" + item["program"].get<std::string>());
    ASSERT_NE(begin, page.npos) << page;
    const std::string its_part = page.substr(begin, page.find("<h2>", begin + 1) - begin);
    EXPECT_EQ(its_part.find(way) != its_part.npos, item["outcome"] == "fits") << line;
  }
}

TEST_F(SweepCommandTest, ALineAnItemInTheOrderOfTheFile) {
  const std::vector<std::string> lines = lines_of(swept());
  ASSERT_EQ(lines.size(), 12u);
  const char* kPolicies[] = {"keep", "offload", "mixed"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json line = Json::parse(lines[i]);
    EXPECT_EQ(line["program"], i < 6 ? "chain.jsonl" : "blocks.jsonl");
    EXPECT_EQ(line["budget"], i / 3 % 2 == 0 ? "card" : "2%");
    EXPECT_EQ(line["policy"], kPolicies[i % 3]);
    EXPECT_EQ(line["program_digest"].get<std::string>().size(), 16u);
  }
  // A chain has no segments: `mixed` is refused, and the sweep says so.
  EXPECT_EQ(Json::parse(lines[2])["outcome"], "refused");
  EXPECT_EQ(result_.code, kUsage);
  EXPECT_NE(result_.err.find("policy 'mixed' needs segments"), std::string::npos) << result_.err;
}

TEST_F(SweepCommandTest, AnItemsFiguresAreThoseOfThePlan) {
  const Json line = Json::parse(lines_of(swept())[8]);
  const Json plan =
      Json::parse(ferry("plan blocks.jsonl --card tiny.toml --policy mixed --json").out)["rows"][0];
  EXPECT_EQ(line["outcome"], "fits");
  for (const char* key : {"step_ns", "device_reserved_bytes", "slowdown", "overlap", "hazards"}) {
    EXPECT_EQ(line[key], plan[key]) << key;
  }
}

TEST_F(SweepCommandTest, HowManyRunAtATimeDoesNotShow) {
  const std::string one = swept("--jobs 1");
  std::filesystem::rename(path("r.jsonl"), path("one.jsonl"));
  EXPECT_EQ(swept("--jobs 5"), one);
}

TEST_F(SweepCommandTest, WhatIsDoneIsNotDoneAgain) {
  std::string whole = swept();
  // A result that nobody would find again stays, for its item does not run.
  std::vector<std::string> lines = lines_of(whole);
  const std::size_t middle = lines[3].find(",\"outcome\"");
  const std::string strange =
      to_line(lines[3].substr(1, middle - 1),
              "\"outcome\":\"fits\",\"cause\":null,\"device_reserved_bytes\":1,\"step_ns\":1");
  whole.replace(whole.find(lines[3]), lines[3].size() + 1, strange);
  write("r.jsonl", strange + lines[0] + "\n");
  EXPECT_EQ(swept(), whole);
  EXPECT_NE(result_.err.find("2 items are done, 10 to do"), std::string::npos) << result_.err;
  EXPECT_EQ(swept(), whole);
  EXPECT_EQ(result_.err.find("to do"), std::string::npos) << result_.err;
}

TEST_F(SweepCommandTest, DamagedLinesAreNoticedAndRunAgain) {
  const std::string whole = swept();
  for (const std::size_t end : {whole.size() - 1, whole.size() - 40, whole.size() - 900}) {
    write("r.jsonl", whole.substr(0, end));
    EXPECT_EQ(swept(), whole) << end;
    EXPECT_NE(result_.err.find("a damaged line"), std::string::npos) << result_.err;
  }
  std::string bent = whole;
  bent[bent.find("\"step_ns\":") + 10] ^= 1;
  write("r.jsonl", bent);
  EXPECT_EQ(swept(), whole);
  EXPECT_NE(result_.err.find("r.jsonl:1: skipped a damaged line"), std::string::npos)
      << result_.err;
  // Zeros, which a crash of the machine leaves.
  write("r.jsonl", lines_of(whole)[0] + "\n" + std::string(100, '\0'));
  EXPECT_EQ(swept(), whole);
}

TEST_F(SweepCommandTest, AnExtendedSweepKeepsWhatItHas) {
  swept();
  std::string more = kSweep;
  more.replace(more.find("[\"card\""), 1, "[\"3%\", ");
  write("s.toml", more);
  const std::string extended = swept();
  EXPECT_NE(result_.err.find("12 items are done, 6 to do"), std::string::npos) << result_.err;
  std::filesystem::remove(path("r.jsonl"));
  EXPECT_EQ(swept(), extended);
}

TEST_F(SweepCommandTest, ResultsOfOtherInputsAreRefusedUntilTheyAreDropped) {
  const std::string before = swept();
  std::string card = read("tiny.toml");
  card.replace(card.find("latency = \"0ns\""), 15, "latency = \"9us\"");
  write("tiny.toml", card);
  expect_refused("sweep s.toml -o r.jsonl", "r.jsonl:1: expected an item of s.toml");
  EXPECT_EQ(read("r.jsonl"), before);
  EXPECT_NE(swept("--drop"), before);
  EXPECT_EQ(lines_of(read("r.jsonl")).size(), 12u);
}

TEST_F(SweepCommandTest, AnotherFileIsNotOverwritten) {
  const std::string card = read("tiny.toml");
  expect_refused("sweep s.toml -o tiny.toml", "tiny.toml:1: expected a line of a sweep's results");
  EXPECT_EQ(read("tiny.toml"), card);
  expect_refused("sweep s.toml -o /dev/null", "/dev/null: expected a regular file");
}

TEST_F(SweepCommandTest, BadInputIsToldWithItsLine) {
  const auto refused = [this](const std::string& piece, const std::string& instead,
                              const std::string& message) {
    std::string text = kSweep;
    text.replace(text.find(piece), piece.size(), instead);
    write("bad.toml", text);
    expect_refused("sweep bad.toml -o bad.jsonl", message);
    EXPECT_FALSE(exists("bad.jsonl"));
  };
  refused("chain.jsonl", "chain2.jsonl", "bad.toml:1: ");
  refused("tiny.toml", "h101", "bad.toml:2: ");
  refused("\"mixed\"", "\"mixd\"", "bad.toml:4: expected policies: ");
  write("chain.jsonl", "{}\n");
  refused("2%", "3%", "chain.jsonl:1: ");
  expect_refused("sweep s.toml -o r.jsonl --share 3/2", "--share: expected a share such as 2/8");
}

TEST_F(SweepCommandTest, SharesAreMerged) {
  const std::string whole = swept();
  for (const std::string share : {"1", "2", "3"}) {
    ferry("sweep s.toml -o p" + share + ".jsonl --share " + share + "/3");
    EXPECT_EQ(lines_of(read("p" + share + ".jsonl")).size(), 4u);
  }
  const Result merged =
      ferry("sweep s.toml -o all.jsonl --from p2.jsonl --from p3.jsonl --from p1.jsonl");
  EXPECT_EQ(merged.err.find("to do"), std::string::npos) << merged.err;
  EXPECT_EQ(read("all.jsonl"), whole);
  const Result lost = ferry("sweep s.toml -o other.jsonl --from p1.jsonl --from p4.jsonl");
  EXPECT_EQ(lost.code, kUsage);
  EXPECT_NE(lost.err.find("p4.jsonl: cannot read"), std::string::npos) << lost.err;
  EXPECT_FALSE(exists("other.jsonl"));
}

TEST_F(SweepCommandTest, CsvHasARowForEachLine) {
  swept();
  const Result csv = ferry("sweep s.toml -o r.jsonl --csv");
  const std::vector<std::string> rows = lines_of(csv.out);
  ASSERT_EQ(rows.size(), 13u);
  EXPECT_EQ(rows[0].substr(0, 43), "ferry,program,program_digest,hardware,hardw");
  EXPECT_EQ(ferry("sweep s.toml -o r.jsonl --json").out, read("r.jsonl"));
}

TEST_F(SweepCommandTest, TheTableHasTheWaysThatNoOtherBeats) {
  std::string card = read("tiny.toml");
  write("dear.toml", "cost = \"10/h\"\n" + card);
  write("s.toml",
        "programs = [\"blocks.jsonl\"]\nhardware = [\"tiny.toml\", \"dear.toml\"]\n"
        "policies = [\"keep\", \"offload-all\", \"offload\", \"checkpoint\"]\n");
  swept();
  EXPECT_EQ(result_.code, kOk);
  EXPECT_EQ(result_.out.find("dear.toml"), std::string::npos);  // the same figures: the first stays
  EXPECT_NE(result_.out.find("tiny.toml              card keep"), std::string::npos) << result_.out;
  EXPECT_EQ(result_.out.find("offload-all"), std::string::npos) << result_.out;
}

TEST_F(SweepCommandTest, ADearCardIsBeatenByACheapOneAsFast) {
  const std::string card = read("tiny.toml");
  write("dear.toml", "cost = \"36/h\"\n" + card);
  write("fair.toml", "cost = \"3.6/h\"\n" + card);
  write("s.toml",
        "programs = [\"blocks.jsonl\"]\nhardware = [\"dear.toml\", \"fair.toml\"]\n"
        "policies = [\"keep\"]\n");
  const std::string line = lines_of(swept())[1];
  const auto step_ns = Json::parse(line)["step_ns"].get<long long>();
  EXPECT_EQ(result_.out.find("dear.toml"), std::string::npos) << result_.out;
  // A second costs a thousandth, so 1,000 steps cost as much as one has seconds.
  char cost[32];
  std::snprintf(cost, sizeof cost, " %lld.%04lld\n", step_ns / 1'000'000'000,
                step_ns / 100'000 % 10'000);
  EXPECT_NE(result_.out.find(cost), std::string::npos) << result_.out << cost;
}

}  // namespace
}  // namespace ferry::cli
