// `ferry check`: judges the stream log of any program (formats/TRACE.md).
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
#include "sim/check/report_json.h"
#include "sim/check/trace_check.h"

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

check::TraceReport judge(LineSource lines, bool leaks) {
  ProgressLine progress;
  check::TraceOptions options;
  options.leaks = leaks;
  options.stop = [&progress](std::uint64_t judged) {
    if (judged % 1024 == 0) progress.show(judged, 0, "lines");
    return is_stopped();
  };
  check::TraceReport report = check::check_trace(lines, options);
  // A recorder that recorded nothing must not look like a clean program.
  if (report.scope.accesses == 0 && report.violations.empty() && !report.stopped) {
    throw InputError(lines.file(), 0,
                     "expected operations that touch memory: there are none, and so there was "
                     "nothing to judge");
  }
  return report;
}

check::TraceReport read(const CheckArguments& arguments) {
  if (arguments.trace == "-") {
    StoppableInput input;
    std::istream in(&input);
    return judge(LineSource(in, kStdin), arguments.leaks);
  }
  refuse_other_kinds(arguments.trace, {FileKind::kLog, FileKind::kHazard, FileKind::kEmpty});
  std::ifstream in = open_file(arguments.trace);
  return judge(LineSource(in, arguments.trace), arguments.leaks);
}

// A buffer is a name or a range: in a row each has cells of its own.
nlohmann::ordered_json to_row(const check::TraceViolation& v) {
  using Json = nlohmann::ordered_json;
  Json row = check::to_json(v);
  // The message has them.
  row.erase("operation");
  row.erase("previous_operation");
  const bool range = v.buffer.empty() && v.range.bytes != 0;
  if (range) row["buffer"] = Json();
  row["address"] = range ? Json(v.range.address) : Json();
  row["bytes"] = range ? Json(v.range.bytes) : Json();
  return row;
}

void print_rows(const check::TraceReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const check::TraceViolation& v : report.violations) rows.push_back(to_row(v));
  print_csv(rows);
}

std::string plural(std::uint64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string plural(const check::TraceScope::Count& n, const char* what) {
  return (n.exact ? "" : "at least ") + plural(n.count, what);
}

// Names a thread that alone keeps much from being forgotten.
void print_pin(const check::TraceReport& report) {
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
  fmt::print("  {} of them for {} alone, which has not waited for {} of {}\n", pin.accesses, who,
             pin.on_stream, where);
}

void print(const CheckArguments& arguments, const check::TraceReport& report) {
  const check::TraceScope& scope = report.scope;
  const std::string file = arguments.trace == "-" ? kStdin : arguments.trace;
  for (const check::TraceViolation& v : report.violations) {
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
  const check::TraceReport report = read(arguments);
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
    return told_stopped(
        fmt::format("{}: what comes behind was not judged", plural(report.lines, "line")));
  }
  return report.violations.empty() ? kOk : kViolated;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "Find races in a program's log of its streams");
  command->footer(R"(
Examples:
  ferry check run.jsonl            its races, each with the line that would mend it
  ferry check run.jsonl --leaks    and what is allocated at the end
  ferry check - < run.jsonl        of a pipe, as its lines come)");
  CLI::Option* trace =
      command->add_option("trace", arguments->trace, "Its log, JSON lines; -: stdin")
          ->type_name("TRACE")
          ->required();
  context.values[trace] = [] { return Values{.names = {}, .or_file = true}; };
  command->add_flag("--leaks", arguments->leaks, "Report what is allocated at the end");
  command->add_flag("--json", arguments->json, "For machines");
  command->add_flag("--csv", arguments->csv, "The violations as comma-separated values")
      ->excludes("--json");
  command->add_flag("--sarif", arguments->sarif, "The violations as SARIF 2.1.0")
      ->excludes("--json")
      ->excludes("--csv");
  command->callback([arguments, &context] {
    listen_for_stop();
    context.exit_code = static_cast<ExitCode>(run(*arguments));
  });
}

}  // namespace ferry::cli
