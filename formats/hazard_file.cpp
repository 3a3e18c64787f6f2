#include "formats/hazard_file.h"

#include <algorithm>
#include <set>

#include "formats/error.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

constexpr std::int64_t kSchema = 1;

// Returns the lines that are operations of the log.
std::set<std::uint64_t> check_log(const HazardFile& hazard, const std::string& file) {
  std::set<std::uint64_t> operations;
  std::istringstream in(hazard.log);
  LineSource lines(in, file);
  StreamLogReader reader(file);
  std::string_view text;
  StreamOp op;
  while (lines.next(text)) {
    const std::uint64_t line = lines.number() + 1;
    if (reader.read(text, line, op)) operations.insert(line);
  }
  return operations;
}

HazardVerdict read_verdict(const Json& object, const std::string& file) {
  Fields fields(object, file, 1);
  HazardVerdict verdict;
  verdict.kind = fields.text("kind");
  verdict.earlier = static_cast<std::uint64_t>(fields.integer("earlier"));
  verdict.later = static_cast<std::uint64_t>(fields.integer("later"));
  return verdict;
}

// True if the text has the form "7@9 12r@14".
bool is_schedule(std::string_view text) {
  const auto number = [&text] {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(digits);
    if (digits > 0 && text.starts_with('r')) text.remove_prefix(1);
    return digits > 0;
  };
  const auto take = [&text](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  do {
    if (!number() || !take('@') || !number()) return false;
  } while (take(' '));
  return text.empty();
}

void check_lines(const HazardFile& hazard, const std::string& file) {
  const std::set<std::uint64_t> operations = check_log(hazard, file);
  for (const HazardVerdict& verdict : hazard.verdicts) {
    for (const std::uint64_t line : {verdict.earlier, verdict.later}) {
      if (operations.contains(line) || (line == 0 && verdict.later != 0)) continue;
      throw InputError(file, 1,
                       "expected \"verdicts\": lines of operations, not " + std::to_string(line));
    }
  }
}

}  // namespace

HazardFile parse_hazard(const std::string& text, const std::string& file) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const Json header = parse_json(std::string_view(text).substr(0, end), file, 1);
  Fields fields(header, file, 1);
  if (fields.text("ferry") != "hazard") fields.expected("ferry", "\"hazard\"");
  if (fields.integer("schema") != kSchema) fields.expected("schema", std::to_string(kSchema));
  HazardFile hazard;
  hazard.system = fields.text("system");
  hazard.what = fields.text("what");
  hazard.source = fields.text("source");
  const Json& verdicts = fields.at("verdicts");
  if (!verdicts.is_array()) fields.expected("verdicts", "a list");
  for (const Json& each : verdicts) {
    if (!each.is_object()) fields.expected("verdicts", "a list of objects");
    hazard.verdicts.push_back(read_verdict(each, file));
  }
  if (fields.has("schedule")) {
    hazard.schedule = fields.text("schedule");
    hazard.seen = fields.text("seen");
    if (!is_schedule(hazard.schedule))
      fields.expected("schedule", "line numbers LATE@UNTIL, separated by spaces");
    if (hazard.seen.empty()) fields.expected("seen", "what the schedule shows");
    if (hazard.verdicts.empty())
      fields.expected("verdicts", "at least one, which the schedule shows");
  }
  if (end < text.size()) hazard.log = text.substr(end + 1);
  if (!hazard.log.empty() && hazard.log.back() != '\n') hazard.log.push_back('\n');
  check_lines(hazard, file);
  return hazard;
}

HazardFile read_hazard(const std::filesystem::path& path) {
  return parse_hazard(read_file(path), path.string());
}

std::string to_text(const HazardFile& hazard) {
  std::string text = R"({"ferry":"hazard","schema":)" + std::to_string(kSchema);
  const auto add = [&text](std::string_view key, std::string_view value) {
    text.append(",\"").append(key).append("\":").append(json_text(value));
  };
  add("system", hazard.system);
  add("what", hazard.what);
  add("source", hazard.source);
  text.append(",\"verdicts\":[");
  const char* before = "";
  for (const HazardVerdict& verdict : hazard.verdicts) {
    text.append(before).append("{\"kind\":").append(json_text(verdict.kind));
    text.append(",\"earlier\":").append(std::to_string(verdict.earlier));
    text.append(",\"later\":").append(std::to_string(verdict.later)).append("}");
    before = ",";
  }
  text.append("]");
  if (!hazard.schedule.empty()) {
    add("schedule", hazard.schedule);
    add("seen", hazard.seen);
  }
  return text + "}\n" + hazard.log;
}

}  // namespace ferry
