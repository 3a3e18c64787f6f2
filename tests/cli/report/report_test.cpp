// `ferry report` as its users meet it: one page, whose data is what `ferry plan` prints.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/program_file.h"
#include "tests/cli/console/terminal.h"
#include "tests/cli/plan_folder.h"
#include "tests/sim/support/tiny.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

class ReportTest : public PlanFolder {
 protected:
  std::string page_of(const std::string& arguments) const {
    const Result result = ferry("report -o page.html " + arguments);
    EXPECT_LE(result.code, kDoesNotFit) << result.err;
    EXPECT_NE(result.out.find("written: page.html ("), std::string::npos) << result.out;
    return read("page.html");
  }
  static std::string element(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t at = page.find(begin) + begin.size();
    return page.substr(at, page.find("</script>", at) - at);
  }
  Json data_of(const std::string& arguments) const {
    return Json::parse(element(page_of(arguments)));
  }
};

std::vector<std::int64_t> column(const Json& differences) {
  std::vector<std::int64_t> values;
  std::int64_t now = 0;
  for (const Json& each : differences) values.push_back(now += each.get<std::int64_t>());
  return values;
}

std::int64_t most(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  std::int64_t all = 0;
  for (const std::int64_t value : values) all += value;
  return all;
}

// The pictures' numbers beside the row's.
void expect_agrees(const Json& run, const Json& row) {
  SCOPED_TRACE(row.at("policy").get<std::string>());
  ASSERT_EQ(run.at("policy"), row.at("policy"));
  ASSERT_TRUE(run.at("drawn"));
  EXPECT_EQ(run.at("step_ns"), row.at("step_ns"));
  const Json& memory = run.at("memory");
  std::vector<std::int64_t> total(memory.at("at_ns").size());
  for (const auto& [kind, differences] : memory.at("bytes").items()) {
    const std::vector<std::int64_t> bytes = column(differences);
    ASSERT_EQ(bytes.size(), total.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) total[i] += bytes[i];
  }
  EXPECT_EQ(most(total), row.at("device_peak_bytes"));
  EXPECT_EQ(most(column(memory.at("reserved_bytes"))), row.at("device_reserved_bytes"));

  std::vector<std::int64_t> kinds;
  for (const auto& [kind, bytes] : row.at("peak_bytes").items()) kinds.push_back(bytes);
  for (const Json& part : run.at("peak").at("parts")) {
    kinds.at(part.at(1).get<std::size_t>()) -= part.at(2).get<std::int64_t>();
  }
  EXPECT_EQ(kinds, std::vector<std::int64_t>(kinds.size()));

  const std::map<std::string, std::string> busy = {
      {"compute", "compute_ns"}, {"copy out", "d2h_ns"}, {"copy in", "h2d_ns"}};
  for (const Json& lane : run.at("lanes")) {
    const Json& slices = lane.at("slices");
    std::int64_t all = lane.at("busy_ns").get<std::int64_t>();
    EXPECT_EQ(sum(column(slices.at("busy_ns"))), all);
    for (const auto& [why, ns] : lane.at("idle_ns").items()) {
      EXPECT_EQ(sum(column(slices.at("idle_ns").at(why))), ns) << why;
      all += ns.get<std::int64_t>();
    }
    const auto of_row = busy.find(lane.at("lane"));
    if (of_row == busy.end()) continue;
    EXPECT_EQ(lane.at("busy_ns"), row.at(of_row->second));
    EXPECT_EQ(all, row.at("step_ns")) << lane.at("lane");
  }
}

TEST_F(ReportTest, APlansFileHasAPageOfItsOwnRun) {
  const std::string on = "blocks.jsonl --card tiny.toml --budget 90MiB ";
  ASSERT_EQ(ferry("plan " + on + "--policy mixed -o mixed.plan").code, kOk);
  const Json data = data_of(on + "--plan mixed.plan");
  const Json rows = Json::parse(ferry("simulate " + on + "--plan mixed.plan --json").out)["rows"];
  ASSERT_EQ(data["plan"]["rows"].size(), 1);
  EXPECT_EQ(data["plan"]["rows"][0], rows[0]);
  ASSERT_EQ(data["runs"].size(), 1);
  expect_agrees(data["runs"][0], rows[0]);
  EXPECT_TRUE(data["curve"].is_null());
  EXPECT_EQ(data["best"], "mixed");
  expect_refused("report -o p.html chain.jsonl --card tiny.toml --plan mixed.plan",
                 "mixed.plan: this plan is for program ");
}

TEST_F(ReportTest, ItsDataIsWhatPlanPrints) {
  for (const std::string arguments :
       {" chain.jsonl --card tiny.toml", " blocks.jsonl --card tiny.toml --budget 80MiB",
        " gpt2 --card rtx4090 --budget 6GiB --policy keep,offload-all,checkpoint"
        " --optimizer none --no-curve"}) {
    SCOPED_TRACE(arguments);
    const Json data = data_of(arguments);
    const std::string plan = arguments.substr(0, arguments.find(" --no-curve"));
    Json printed = Json::parse(ferry("plan --json" + plan).out);
    printed.erase("next_steps");  // a page is looked at
    EXPECT_EQ(data.at("plan"), printed);
    if (arguments.find("--no-curve") == std::string::npos) {
      const std::string subject = arguments.substr(0, arguments.find(" --budget"));
      EXPECT_EQ(data.at("curve"), Json::parse(ferry("plan --pareto --json" + subject).out));
    }
    const Json& rows = data.at("plan").at("rows");
    ASSERT_EQ(data.at("runs").size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) expect_agrees(data.at("runs")[i], rows[i]);
  }
}

TEST_F(ReportTest, TheNextStepIsTheSamePlansCommand) {
  const std::string on = "gpt2 --card rtx4090 --budget 6GiB --policy mixed";
  for (const std::string page : {"--no-curve -o p.html ", "--output=p.html --no-curve "}) {
    EXPECT_NE(ferry("report " + page + on).out.find("\n  ferry plan " + on + " -o gpt2.plan\n"),
              std::string::npos);
  }
}

TEST_F(ReportTest, ItNeedsNothingElseAndIsTheSameEachTime) {
  const std::string page = page_of("chain.jsonl --card tiny.toml");
  EXPECT_EQ(page, page_of("chain.jsonl --card tiny.toml"));
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  const std::string names_svg = "http://www.w3.org/2000/svg";
  for (const std::string fetches : {"://", "src=", "href=", "@import", "url(", "fetch("}) {
    const std::size_t at = page.find(fetches);
    if (at != std::string::npos) {
      EXPECT_EQ(page.substr(at - 4, names_svg.size()), names_svg) << fetches;
      EXPECT_EQ(page.find(fetches, at + 1), std::string::npos) << fetches;
    }
  }
}

TEST_F(ReportTest, NamesOfAnybodysEndNothing) {
  const std::string hostile = "</script><script>alert('\"&1')</script><!--\u2028{{js}}";
  Program program = test::chain({});
  program.name = hostile;
  for (Global& global : program.globals) global.name = hostile + global.name + ".weight";
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* op = std::get_if<Op>(&statement.action)) op->name += hostile;
    }
  }
  write("hostile.jsonl", to_text(program));
  const std::string page = page_of("hostile.jsonl --card tiny.toml --no-curve");
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script"); at != std::string::npos;
       at = page.find("</script", at + 1)) {
    ++ends;
  }
  EXPECT_EQ(ends, 2u);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  const Json data = Json::parse(element(page));
  bool told = false;
  for (const Json& text : data.at("texts")) {
    told |= text.get<std::string>().find(hostile.substr(0, 40)) != std::string::npos;
  }
  EXPECT_TRUE(told);
  EXPECT_TRUE(data.at("curve").is_null());
}

TEST_F(ReportTest, BadInputIsRefusedAndNothingIsWritten) {
  expect_refused("report chain.jsonl --card tiny.toml", "--output is required");
  expect_refused("report none --card tiny.toml -o page.html", "none: ");
  expect_refused("report chain.jsonl --card tiny.toml --budget lots -o page.html", "--budget: ");
  EXPECT_EQ(ferry("report chain.jsonl --card tiny.toml -o nowhere/page.html").code,
            kResourceMissing);
  EXPECT_FALSE(exists("page.html"));
}

TEST_F(ReportTest, WhatFailsIsSaidAndNotDrawn) {
  const Json data = data_of("blocks.jsonl --card tiny.toml --budget 1MiB --no-curve");
  EXPECT_NE(data.at("plan").at("answer").get<std::string>().find("Nothing fits"),
            std::string::npos);
  EXPECT_EQ(ferry("report blocks.jsonl --card tiny.toml --budget 1MiB -o page.html").code,
            kDoesNotFit);
}

TEST_F(ReportTest, CtrlCLeavesNoPage) {
  Terminal report("cd '" + path("").string() +
                  "' && exec '" FERRY_PROGRAM
                  "' report llama3-8b --card h100 --unchecked -o page.html");
  ASSERT_TRUE(report.shows("/"));  // a search has begun
  report.press_ctrl_c();
  EXPECT_EQ(report.end(), 130);
  EXPECT_FALSE(exists("page.html"));
}

}  // namespace
}  // namespace ferry::cli
