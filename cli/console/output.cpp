#include "cli/console/output.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/printable.h"

namespace ferry::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string to_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text =
      value.is_string() ? printable(value.get_ref<const std::string&>()) : to_text(value);
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

void add_cells(const std::string& before, const Json& object, std::string& keys,
               std::string& cells) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      add_cells(before + key + ".", value, keys, cells);
      continue;
    }
    keys += (keys.empty() ? "" : ",") + before + key;
    cells += (cells.empty() ? "" : ",") + cell(value);
  }
}

}  // namespace

void print_csv_row(const Json& row, bool with_keys) {
  std::string keys, cells;
  add_cells("", row, keys, cells);
  if (with_keys) std::printf("%s\n", keys.c_str());
  std::printf("%s\n", cells.c_str());
}

void print_csv(const Json& rows) {
  for (const Json& row : rows) print_csv_row(row, &row == &rows.front());
}

void print_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    shown += printable(text.substr(0, end));
    if (end < text.size()) shown += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_json(const nlohmann::ordered_json& json) {
  const std::string text = to_text(json, 2) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace ferry::cli
