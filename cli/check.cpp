// `ferry check`: judges the stream log of any program (formats/TRACE.md).
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/context.h"
#include "formats/line_source.h"
#include "formats/text_file.h"
#include "sim/check/trace_check.h"

namespace ferry::cli {
namespace {

constexpr int kSchema = 1;
constexpr const char* kStdin = "stdin";

struct Arguments {
  std::string trace;
  bool leaks = false;
  bool json = false;
};

check::TraceReport read(const Arguments& arguments) {
  if (arguments.trace == "-") {
    std::ios::sync_with_stdio(false);
    LineSource lines(std::cin, kStdin);
    return check::check_trace(lines, arguments.leaks);
  }
  std::ifstream in = open_file(arguments.trace);
  LineSource lines(in, arguments.trace);
  return check::check_trace(lines, arguments.leaks);
}

nlohmann::ordered_json to_json(const check::TraceViolation& v) {
  using Json = nlohmann::ordered_json;
  Json buffer;
  if (!v.buffer.empty()) {
    buffer = v.buffer;
  } else if (v.range.bytes != 0) {
    buffer = {{"address", v.range.address}, {"bytes", v.range.bytes}};
  }
  const bool alone = v.previous_line == 0;
  return {
      {"kind", check::name(v.kind)},
      {"buffer", buffer},
      {"line", v.line},
      {"previous_line", alone ? Json() : Json(v.previous_line)},
      {"count", v.count},
      {"stream", v.by_host ? Json() : Json(v.stream)},
      {"previous_stream", alone || v.previous_by_host ? Json() : Json(v.previous_stream)},
      {"message", v.message},
      {"fix", v.fix},
  };
}

void print_json(const check::TraceReport& report) {
  nlohmann::ordered_json json = {{"schema", kSchema}, {"lines", report.lines}};
  json["violations"] = nlohmann::ordered_json::array();
  for (const check::TraceViolation& v : report.violations) json["violations"].push_back(to_json(v));
  fmt::print("{}\n", json.dump(2));
}

// Names are the log's: what a terminal would take for more than text is written as \xNN.
std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown.push_back(c);
    } else {
      shown += fmt::format("\\x{:02x}", byte);
    }
  }
  return shown;
}

void print(const Arguments& arguments, const check::TraceReport& report) {
  const auto plural = [](std::uint64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const std::string file = arguments.trace == "-" ? kStdin : arguments.trace;
  for (const check::TraceViolation& v : report.violations) {
    const std::string times = v.count > 1 ? fmt::format(" ({} times)", v.count) : "";
    fmt::print("{}:{}: {}{}\n  fix: {}\n", file, v.line, printable(v.message), times,
               printable(v.fix));
  }
  fmt::print("{}, {}\n", plural(report.lines, "line"),
             plural(report.violations.size(), "violation"));
}

int run(const Arguments& arguments) {
  const check::TraceReport report = read(arguments);
  if (arguments.json) {
    print_json(report);
  } else {
    print(arguments, report);
  }
  return report.violations.empty() ? kOk : kViolated;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("check", "Find races in a program's log of its streams");
  command->add_option("trace", arguments->trace, "Its log, JSON lines; -: stdin")
      ->type_name("TRACE")
      ->required();
  command->add_flag("--leaks", arguments->leaks, "Report what is allocated at the end");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback(
      [arguments, &context] { context.exit_code = static_cast<ExitCode>(run(*arguments)); });
}

}  // namespace ferry::cli
