// Writes a verdict as SARIF (report_json.h).
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/check/report_json.h"

namespace ferry::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "https://json.schemastore.org/sarif-2.1.0.json";

std::string rule_of(HazardKind kind) {
  std::string id(name(kind));
  for (char& c : id) c = c == ' ' ? '-' : c;
  return id;
}

// Returns the URI of a path. Bytes that a URI may not contain are written as %XX (RFC 3986).
std::string uri_of(const std::string& path) {
  constexpr std::array kDigits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                  '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'};
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return uri;
}

// Returns null if there is no file to open.
Json location(const std::string& operation, std::uint64_t log_line, const std::string& log) {
  const Place place = place_of(operation);
  const bool in_source = !place.file.empty();
  const std::uint64_t line = in_source ? place.line : log_line;
  if ((!in_source && log.empty()) || line == 0) return {};
  Json json;
  json["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(in_source ? place.file : log)}}},
                              {"region", {{"startLine", line}}}};
  if (!place.function.empty()) {
    json["logicalLocations"] = Json::array({{{"name", place.function}, {"kind", "function"}}});
  }
  if (!operation.empty()) json["message"] = {{"text", operation}};
  return json;
}

Json result(const LogViolation& v, const std::string& log) {
  Json json = {{"ruleId", rule_of(v.kind)},
               {"level", "error"},
               {"message", {{"text", v.message + "\nfix: " + v.fix}}}};
  json["locations"] = Json::array();
  json["relatedLocations"] = Json::array();
  const Json later = location(v.operation, v.line, log);
  const Json earlier = location(v.previous_operation, v.previous_line, log);
  if (!later.is_null()) json["locations"].push_back(later);
  if (!earlier.is_null()) json["relatedLocations"].push_back(earlier);
  json["occurrenceCount"] = v.count;
  return json;
}

}  // namespace

Json to_sarif(const LogReport& report, const std::string& log) {
  std::map<std::string, std::string> rules;
  Json results = Json::array();
  for (const LogViolation& v : report.violations) {
    rules.emplace(rule_of(v.kind), std::string(name(v.kind)));
    results.push_back(result(v, log));
  }
  Json described = Json::array();
  for (const auto& [id, words] : rules) {
    described.push_back({{"id", id}, {"shortDescription", {{"text", words}}}});
  }
  Json run;
  run["tool"]["driver"] = {{"name", "Ferry"}, {"rules", described}};
  run["results"] = results;
  return {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
}

}  // namespace ferry::check
