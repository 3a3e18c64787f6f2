// Stream logs (formats/STREAM_LOG.md), from text to verdict.
//
// For every input:
//   * it is refused at the first line that the reader refuses, or judged;
//   * without the lines that are refused it is judged;
//   * the verdict is that of the same log in another library's JSON (nlohmann's), keys sorted;
//   * what a log's beginning is found guilty of, the whole log is;
//   * where all host threads are there from the beginning, what may be forgotten changes nothing.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "formats/error.h"
#include "formats/line_source.h"
#include "formats/stream_log.h"
#include "sim/check/log_check.h"
#include "tests/fuzz/property.h"

namespace ferry::fuzz {
namespace {

using check::LogReport;
using check::LogViolation;
using nlohmann::json;

const std::string kFile = "log";

LogReport check(const std::string& log) {
  std::istringstream in(log);
  LineSource lines(in, kFile);
  return check::check_log(lines, /*leaks=*/true);
}

LogReport check_forgetfully(const std::string& log) {
  std::istringstream in(log);
  LineSource lines(in, kFile);
  return check::check_log(lines, {.leaks = true, .many = 0});
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string join(const std::vector<std::string_view>& lines, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.append(lines[i]).append("\n");
  return text;
}

bool has_float(const json& value) {
  if (value.is_number_float()) return true;
  if (!value.is_structured()) return false;
  return std::any_of(value.begin(), value.end(), has_float);
}

// The line, written by the other library; as it is where that one rounds a number.
std::string rewritten(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {};
  json value;
  try {
    value = json::parse(line);
  } catch (const json::out_of_range&) {  // 1e999
    return std::string(line);
  }
  return has_float(value) ? std::string(line) : value.dump();
}

auto facts(const LogViolation& v) {
  return std::tie(v.kind, v.buffer, v.range, v.line, v.previous_line, v.by_host, v.previous_by_host,
                  v.stream, v.previous_stream, v.message, v.fix);
}

void require_sense(const LogReport& report) {
  std::uint64_t last = 0;
  for (const LogViolation& v : report.violations) {
    require(v.line <= report.lines && v.previous_line <= report.lines, "violations are on lines");
    require(last <= v.line, "violations are in the order of lines");
    require(v.count >= 1 && !v.message.empty() && !v.fix.empty(), "violations say what and how");
    last = v.line;
  }
}

void require_same(const LogReport& a, const LogReport& b) {
  require(a.lines == b.lines && a.violations.size() == b.violations.size(), "equal logs");
  for (std::size_t i = 0; i < a.violations.size(); ++i) {
    require(facts(a.violations[i]) == facts(b.violations[i]), "equal logs, equal violations");
    require(a.violations[i].count == b.violations[i].count, "equal logs, equal counts");
  }
}

// Leaks are an end's, and so is that nobody releases a token.
void require_beginning(const LogReport& part, const LogReport& whole) {
  const auto counts = [&](const LogViolation& v) {
    const bool unreleased = v.kind == check::HazardKind::kDeadlock && v.previous_line == 0;
    return v.kind != check::HazardKind::kLeak && !unreleased && v.line <= part.lines;
  };
  auto at = whole.violations.begin();
  for (const LogViolation& v : part.violations) {
    if (!counts(v)) continue;
    at = std::find_if(at, whole.violations.end(), counts);
    require(at != whole.violations.end() && facts(*at) == facts(v) && at->count >= v.count,
            "a beginning's violations are the whole log's");
    ++at;
  }
  require(std::none_of(at, whole.violations.end(), counts), "and there are no others");
}

void judge(const std::vector<std::string_view>& lines) {
  const LogReport report = check(join(lines, lines.size()));
  require_sense(report);
  const LogReport forgot = check_forgetfully(join(lines, lines.size()));
  require_sense(forgot);
  if (report.scope.threads.count == 1) require_same(forgot, report);
  require(report.lines == lines.size(), "every line is counted");
  require_sense(report);
  std::string other;
  for (const std::string_view line : lines) other.append(rewritten(line)).append("\n");
  require_same(report, check(other));
  require_beginning(check(join(lines, lines.size() / 2)), report);
}

void run(const std::string& text) {
  const std::vector<std::string_view> lines = split(text);
  std::vector<std::string_view> taken;
  std::uint64_t refused = 0;
  StreamLogReader reader(kFile);
  StreamOp op;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      reader.read(lines[i], i + 1, op);
      taken.push_back(lines[i]);
    } catch (const InputError& error) {
      require(error.line() == i + 1, "a refusal names its line");
      if (refused == 0) refused = i + 1;
    }
  }
  if (refused != 0) {
    try {
      check(text);
      require(false, "a log with a refused line is refused");
    } catch (const InputError& error) {
      require_place(error, kFile, text);
      require(error.line() == refused, "a log is refused at its first refused line");
    }
  }
  judge(taken);
}

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ferry::fuzz::run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
