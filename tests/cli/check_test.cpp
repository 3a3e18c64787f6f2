// `ferry check` as its users meet it, and what the recorders of examples/recorder write for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "examples/recorder/ferry_recorder.h"
#include "formats/text_file.h"
#include "tests/cli/console/shell.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest()
      : folder_(fs::path(::testing::TempDir()) / ("ferry_check_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~CheckTest() override { fs::remove_all(folder_); }

  fs::path log() const { return folder_ / "run.jsonl"; }
  void write(const std::string& text) { std::ofstream(log()) << text; }
  Result check(const std::string& more = "") {
    return shell("cd " + folder_.string() + " && " + FERRY_PROGRAM + " check run.jsonl " + more,
                 (folder_ / "result").string());
  }

  fs::path folder_;
};

const std::string kRace = R"({"op":"kernel","stream":"main","reads":[],"writes":["x"],"name":"mm"}
{"op":"record","event":"e","stream":"main"}
{"op":"kernel","stream":"side","reads":["x"],"writes":["y"],"name":"relu","where":"net.py:7"}
)";

TEST_F(CheckTest, PrintsARaceWithItsFix) {
  write(kRace);
  const Result race = check();
  EXPECT_EQ(race.code, kViolated);
  EXPECT_EQ(race.out,
            "run.jsonl:3: read after write of \"x\": relu at net.py:7 on stream \"side\" (line 3) "
            "is not ordered after mm on stream \"main\" (line 1)\n"
            "  fix: record an event on stream \"main\" after line 1, and wait for it on stream "
            "\"side\" before line 3; in PyTorch: torch.cuda.current_stream().wait_stream(s) before "
            "net.py:7, where s is stream \"main\"\n"
            "3 lines: 3 operations on 2 streams, 1 host thread and 2 buffers: 1 violation\n");
  EXPECT_EQ(race.err, "");
}

TEST_F(CheckTest, EachViolationIsARowOfCsv) {
  write(kRace + R"({"op":"kernel","stream":"main","reads":[],"writes":[{"address":4096,"bytes":64}]}
{"op":"kernel","stream":"other","reads":[{"address":4100,"bytes":4}],"writes":[]}
)");
  const Result rows = check("--csv");
  EXPECT_EQ(rows.code, kViolated);
  std::istringstream lines(rows.out);
  std::string header, named, range, end;
  std::getline(lines, header);
  std::getline(lines, named);
  std::getline(lines, range);
  EXPECT_EQ(
      header,
      "kind,buffer,line,previous_line,count,stream,previous_stream,message,fix,address,bytes");
  EXPECT_TRUE(named.starts_with("read after write,x,3,1,1,side,main,\"read after write of \"\"x"))
      << named;
  EXPECT_TRUE(named.ends_with(",,")) << named;
  EXPECT_TRUE(range.starts_with("read after write,,5,4,1,other,main,")) << range;
  EXPECT_TRUE(range.ends_with(",4100,4") || range.ends_with(",4096,64")) << range;
  EXPECT_FALSE(std::getline(lines, end)) << end;
  EXPECT_EQ(check("--csv --json").code, kUsage);
}

TEST_F(CheckTest, ACleanLog) {
  write(R"({"op":"kernel","stream":"main","reads":[],"writes":["x"]})");
  const Result clean = check();
  EXPECT_EQ(clean.code, kOk);
  EXPECT_EQ(clean.out,
            "1 line: 1 operation on 1 stream, 1 host thread and 1 buffer: 0 violations\n");
}

// A recorder that recorded nothing once looked like a clean program.
TEST_F(CheckTest, ALogOfNothingIsNotClean) {
  for (const char* text : {"", "\n\n", "{\"op\":\"stream\",\"id\":1,\"kind\":\"legacy\"}\n"}) {
    write(text);
    const Result nothing = check();
    EXPECT_EQ(nothing.code, kUsage) << text;
    EXPECT_EQ(nothing.out, "");
    EXPECT_EQ(nothing.err,
              "ferry: run.jsonl: expected operations that touch memory, found none: there was "
              "nothing to judge\n");
  }
}

TEST_F(CheckTest, ReadsStdin) {
  write(kRace);
  const Result piped = shell("cat " + log().string() + " | " + FERRY_PROGRAM + " check -",
                             (folder_ / "result").string());
  EXPECT_EQ(piped.code, kViolated);
  EXPECT_EQ(piped.out.substr(0, 26), "stdin:3: read after write ");
}

TEST_F(CheckTest, AMalformedLineIsNamedAndNothingIsPrinted) {
  write(kRace + "\n{\"op\":\"wait\",\"event\":1}\n");
  const Result bad = check("--json");
  EXPECT_EQ(bad.code, kUsage);
  EXPECT_EQ(bad.out, "");
  EXPECT_EQ(bad.err, "ferry: run.jsonl:5: expected \"stream\": a string or an integer\n");
  EXPECT_EQ(shell(std::string(FERRY_PROGRAM) + " check none.jsonl", (folder_ / "r").string()).code,
            kUsage);
}

TEST_F(CheckTest, JsonHasOneObjectForEachViolation) {
  write(kRace + R"({"op":"alloc","address":4096,"bytes":16,"stream":"main","pool":"caching"})" +
        "\n");
  const Result result = check("--json --leaks");
  EXPECT_EQ(result.code, kViolated);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["lines"], 4);
  EXPECT_EQ(json["operations"], 4);
  EXPECT_EQ(json["streams"], 2);
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["buffers"], 3);
  EXPECT_EQ(json["left_out"], 0);
  EXPECT_EQ(json["remembered"], 3);
  EXPECT_EQ(json["pinned"][0]["thread"], "");
  ASSERT_EQ(json["violations"].size(), 2u);
  const auto& race = json["violations"][0];
  EXPECT_EQ(race["kind"], "read after write");
  EXPECT_EQ(race["buffer"], "x");
  EXPECT_EQ(race["line"], 3);
  EXPECT_EQ(race["previous_line"], 1);
  EXPECT_EQ(race["count"], 1);
  EXPECT_EQ(race["stream"], "side");
  EXPECT_EQ(race["previous_stream"], "main");
  EXPECT_FALSE(race["message"].get<std::string>().empty());
  EXPECT_FALSE(race["fix"].get<std::string>().empty());
  const auto& leak = json["violations"][1];
  EXPECT_EQ(leak["kind"], "leak");
  EXPECT_EQ(leak["buffer"], nlohmann::json({{"address", 4096}, {"bytes", 16}}));
  EXPECT_TRUE(leak["previous_line"].is_null());
  EXPECT_EQ(nlohmann::json::parse(check("--json").out)["violations"].size(), 1u);
}

// Every call once, in an order without a race; then one race.
TEST_F(CheckTest, TheRecorderForCxxIsUnderstood) {
  const std::vector<char> memory(64);
  const void* at = memory.data();
  {
    Recorder log_file(log().c_str());
    int handle = 0;
    log_file.stream(0, "legacy").stream(&handle, "blocking").stream("side", "nonblocking", 1);
    log_file.alloc(at, 64, 0, "malloc").kernel(0, {}, {{at, 64}}, "a \"name\"");
    log_file.record(1, 0).wait(1, "side").event_query(1, false).stream_query("side", false);
    log_file.copy("side", "host", "pinned", {at, 64}, "device").stream_sync("side");
    log_file.event_sync(1).device_sync().host_read("host").host_write("host");
    log_file.release("f", 0).wait(1, "side").acquire("f", 0);
    log_file.release("m").acquire("m").host_func(0, {"host"}, {}).memset(0, {at, 4});
    log_file.record_use({at, 64}, "side").device_sync().event_query(1, true);
    log_file.stream_query(0, true).free(at, 64, 0, "malloc");
    log_file.event_destroy(1).stream_destroy("side").host_view("host").host_view_end("host");
    Recorder::thread("worker");
    log_file.host_read("host");
    Recorder::thread("");
    log_file.close();
  }
  const Result result = check("--json");
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["lines"], 32);
  ASSERT_EQ(json["violations"].size(), 1u) << result.out;
  EXPECT_EQ(json["violations"][0]["kind"], "read after write");
  EXPECT_EQ(json["violations"][0]["line"], 32);
  EXPECT_EQ(json["views"], 1);
}

TEST_F(CheckTest, WhatIsNotJudgedIsToldAndIsNoViolation) {
  write(R"({"op":"host_view","buffer":"x","where":"a.py:1"})"
        "\n"
        R"({"op":"kernel","stream":"s","reads":["x"],"writes":[]})"
        "\n");
  const Result result = check("");
  EXPECT_EQ(result.code, kOk);
  EXPECT_TRUE(result.out.starts_with("run.jsonl:2: not judged: host_view at a.py:1 (line 1): "))
      << result.out;
  EXPECT_TRUE(result.out.ends_with(": 0 violations, 1 view not judged\n")) << result.out;
  const auto json = nlohmann::json::parse(check("--json").out);
  EXPECT_EQ(json["unjudged_views"], 1);
  ASSERT_EQ(json["unjudged"].size(), 1u);
  EXPECT_EQ(json["unjudged"][0]["view"]["file"], "a.py");
  EXPECT_EQ(json["unjudged"][0]["line"], 2);
}

TEST_F(CheckTest, NamesCannotWriteToTheTerminal) {
  write("{\"op\":\"acquire\",\"token\":1,\"stream\":\"\\u001b[31m\\nred\"}\n");
  const Result result = check("");
  EXPECT_EQ(result.code, kViolated);
  EXPECT_NE(result.out.find("stream \"\\x1b[31m\\x0ared\""), std::string::npos) << result.out;
}

TEST_F(CheckTest, ARecorderOnAFullDiskSaysSo) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full";
  Recorder log_file("/dev/full");
  log_file.device_sync();
  EXPECT_THROW(log_file.close(), std::runtime_error);
}

TEST_F(CheckTest, TheRecorderForPythonIsUnderstood) {
  const std::string script = R"(
from ferry_recorder import Recorder
log = Recorder("run.jsonl")
log.stream("main", "legacy")
log.alloc(4096, 64, "main")
log.kernel("main", [], [(4096, 64), "x"], name="mm")
log.record(1, "main"); log.wait(1, "side"); log.event_query(1, False)
log.copy("side", (4096, 64), "host", "device", "pinned"); log.record_use((4096, 64), "side")
log.free(4096, 64, "main"); log.stream_sync("side"); log.stream_query("side", True)
log.host_read("host"); log.host_write("host"); log.memset("main", "x")
log.host_func("main", ["x"]); log.release("m"); log.acquire("m", thread="t")
log.event_sync(1); log.device_sync(); log.event_destroy(1); log.stream_destroy("side")
log.host_view("x"); log.host_view_end("x")
log.kernel("other", ["x"], [], name="race", thread="t")
log.close()
)";
  std::ofstream(folder_ / "script.py") << script;
  const std::string recorder = std::string(FERRY_SOURCE_DIR) + "/examples/recorder";
  const Result run =
      shell("cd " + folder_.string() + " && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + recorder +
                " python3 script.py",
            (folder_ / "python").string());
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(check("--json").out);
  EXPECT_EQ(json["lines"], 24);
  EXPECT_EQ(json["views"], 1);
  ASSERT_EQ(json["violations"].size(), 1u) << json;
  const std::string message = json["violations"][0]["message"];
  EXPECT_NE(message.find("script.py:14"), std::string::npos) << message;
}

}  // namespace
}  // namespace ferry::cli
