// `ferry check`: judges the stream log of any program (formats/STREAM_LOG.md), from a file or from
// stdin, and prints the violations as text, JSON, CSV or SARIF. sim/check has the checkers.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "formats/error.h"
#include "formats/file_kind.h"
#include "formats/line_source.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "sim/check/log_check.h"
#include "sim/check/report_json.h"

namespace ferry::cli {
namespace {

constexpr const char* kStdin = "stdin";

struct CheckArguments {
  std::string trace;
  bool leaks = false;
  bool json = false;
  bool csv = false;
  bool sarif = false;
};

check::LogReport judge(LineSource lines, bool leaks) {
  ProgressLine progress;
  check::LogOptions options;
  options.leaks = leaks;
  options.stop = [&progress](std::uint64_t judged) {
    if (judged % 1024 == 0) progress.show(judged, 0, "lines");
    return is_stopped();
  };
  check::LogReport report = check::check_log(lines, options);
  // A recorder that recorded nothing must not look like a clean program.
  if (report.scope.accesses == 0 && report.violations.empty() && !report.stopped) {
    throw InputError(lines.file(), 0,
                     "expected operations that touch memory, found none: there was nothing to "
                     "judge");
  }
  return report;
}

check::LogReport read(const CheckArguments& arguments) {
  if (arguments.trace == "-") {
    StoppableInput input;
    std::istream in(&input);
    return judge(LineSource(in, kStdin), arguments.leaks);
  }
  refuse_other_kinds(arguments.trace, {FileKind::kLog, FileKind::kHazard, FileKind::kEmpty});
  std::ifstream in = open_file(arguments.trace);
  return judge(LineSource(in, arguments.trace), arguments.leaks);
}

// A buffer is a name or an address range. A CSV row has separate cells for the two.
nlohmann::ordered_json to_row(const check::LogViolation& v) {
  using Json = nlohmann::ordered_json;
  Json row = check::to_json(v);
  // The message names both operations.
  row.erase("operation");
  row.erase("previous_operation");
  const bool range = v.buffer.empty() && v.range.bytes != 0;
  if (range) row["buffer"] = Json();
  row["address"] = range ? Json(v.range.address) : Json();
  row["bytes"] = range ? Json(v.range.bytes) : Json();
  return row;
}

void print_rows(const check::LogReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const check::LogViolation& v : report.violations) rows.push_back(to_row(v));
  print_csv(rows);
}

std::string plural(std::uint64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string plural(const check::LogScope::Count& n, const char* what) {
  return (n.exact ? "" : "at least ") + plural(n.count, what);
}

// Says why the checker used much memory: it remembers an access until every host thread has waited
// for it. If one thread alone holds up some of them, it names that thread.
void print_pin(const check::LogReport& report) {
  constexpr std::uint64_t kMuch = 10'000;
  if (report.remembered < kMuch) return;
  fmt::print("{} accesses had to be remembered: not every host thread has waited for them\n",
             report.remembered);
  if (report.pins.empty()) return;
  const check::TracePin& pin = report.pins.front();
  const std::string who =
      pin.thread.empty() ? "the host" : "host thread \"" + printable(pin.thread) + "\"";
  const std::string where =
      pin.stream.empty() ? "host threads" : "stream \"" + printable(pin.stream) + "\"";
  fmt::print("  {} of them only because {} has not waited; {} of these are on {}\n", pin.accesses,
             who, pin.on_stream, where);
}

void print(const CheckArguments& arguments, const check::LogReport& report) {
  const check::LogScope& scope = report.scope;
  const std::string file = arguments.trace == "-" ? kStdin : arguments.trace;
  for (const check::LogViolation& v : report.violations) {
    const std::string times = v.count > 1 ? fmt::format(" ({} times)", v.count) : "";
    fmt::print("{}:{}: {}{}\n  fix: {}\n", printable(file), v.line, printable(v.message), times,
               printable(v.fix));
  }
  if (report.left_out != 0) {
    fmt::print("{} more, which are only counted\n", plural(report.left_out, "violation"));
  }
  for (const check::TraceUnjudged& each : report.unjudged) {
    const std::string times = each.count > 1 ? fmt::format(" ({} times)", each.count) : "";
    fmt::print("{}:{}: not judged: {}{}\n", printable(file), each.line, printable(each.message),
               times);
  }
  print_pin(report);
  const std::string unjudged =
      report.unjudged_views == 0 ? "" : plural(report.unjudged_views, "view") + " not judged";
  fmt::print("{}: {} on {}, {} and {}: {}{}\n", plural(report.lines, "line"),
             plural(scope.operations, "operation"), plural(scope.streams, "stream"),
             plural(scope.threads, "host thread"), plural(scope.buffers, "buffer"),
             plural(report.violations.size(), "violation"),
             unjudged.empty() ? "" : ", " + unjudged);
}

int run(const CheckArguments& arguments) {
  const check::LogReport report = read(arguments);
  if (arguments.json) {
    print_json(check::to_json(report));
  } else if (arguments.sarif) {
    print_json(check::to_sarif(report, arguments.trace == "-" ? "" : arguments.trace));
  } else if (arguments.csv) {
    print_rows(report);
  } else {
    print(arguments, report);
  }
  if (report.stopped) {
    return told_stopped(fmt::format("{}: the rest was not judged", plural(report.lines, "line")));
  }
  return report.violations.empty() ? kOk : kViolated;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "Find races in a program's stream log");
  command->footer(R"(
Examples:
  ferry check run.jsonl            print the races, each with a fix
  ferry check run.jsonl --leaks    also print memory that is never freed
  ferry check - < run.jsonl        read a pipe, and judge each line as it arrives)");
  CLI::Option* trace =
      command->add_option("trace", arguments->trace, "The stream log (JSON lines), or - for stdin")
          ->type_name("TRACE")
          ->required();
  context.values[trace] = [] { return Values{.names = {}, .or_file = true}; };
  command->add_flag("--leaks", arguments->leaks,
                    "Report memory that is still allocated at the end");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_flag("--csv", arguments->csv, "Print violations as comma-separated values")
      ->excludes("--json");
  command->add_flag("--sarif", arguments->sarif, "Print violations as SARIF 2.1.0")
      ->excludes("--json")
      ->excludes("--csv");
  command->callback([arguments, &context] {
    listen_for_stop();
    context.exit_code = static_cast<ExitCode>(run(*arguments));
  });
}

}  // namespace ferry::cli
