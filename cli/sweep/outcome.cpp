#include "cli/sweep/outcome.h"

#include <sys/wait.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFigures[] = {"device_peak_bytes",
                                    "device_reserved_bytes",
                                    "host_peak_bytes",
                                    "step_ns",
                                    "slowdown",
                                    "overlap",
                                    "hazards",
                                    "compute_ns",
                                    "d2h_ns",
                                    "h2d_ns",
                                    "offloaded_bytes",
                                    "reloaded_bytes",
                                    "recomputed_segments",
                                    "recomputes",
                                    "lower_bound_ns",
                                    "gap"};

// Returns the only row of the plan; null if the child printed none.
Json row_of(const std::string& text) {
  Json plan = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object() || !plan["rows"].is_array() || plan["rows"].size() != 1) return nullptr;
  Json row = plan["rows"][0];
  row["least_bytes"] = plan.value("least_bytes", Json());
  return row;
}

// Returns the first line of the child's messages; the lines after it only explain it.
std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.starts_with("ferry: ")) line.erase(0, std::strlen("ferry: "));
  return line;
}

struct Verdict {
  std::string_view outcome;
  std::string cause;
};

Verdict judge(const ChildEnd& end, bool has_row) {
  if (end.late) return {kLate, "killed at the time limit"};
  const std::string told = first_line(end.err);
  const std::string more = told.empty() ? "" : ": " + told;
  if (WIFSIGNALED(end.status)) {
    const int signal = WTERMSIG(end.status);
    return {kCrashed, "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")" + more};
  }
  const int code = WEXITSTATUS(end.status);
  if (has_row && code == kOk) return {kFits, ""};
  if (has_row && code == kDoesNotFit) return {kFitsNot, ""};
  if (has_row && code == kViolated) return {kViolates, told};
  if (code == kUsage) return {kRefused, told};
  return {kFailed, "exit code " + std::to_string(code) + more};
}

}  // namespace

std::string outcome_of(const ChildEnd& end) {
  const Json row = end.late ? Json() : row_of(end.out);
  const Verdict verdict = judge(end, row.is_object());
  Json outcome = {{"outcome", verdict.outcome}, {"cause", nullptr}};
  if (!verdict.cause.empty()) outcome["cause"] = verdict.cause;
  for (const char* key : kFigures) outcome[key] = row.is_object() ? row.value(key, Json()) : Json();
  outcome["least_bytes"] = row.is_object() ? row["least_bytes"] : Json();
  const std::string text = outcome.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

}  // namespace ferry::cli
