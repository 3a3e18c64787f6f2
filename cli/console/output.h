// Prints results on stdout. Names come from files that anybody may have written: control characters
// in them are escaped, and invalid UTF-8 does not end the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ferry::cli {

// Prints lines. Control characters other than line ends are escaped.
void print_text(std::string_view text);
// Prints ASCII only.
void print_json(const nlohmann::ordered_json& json);
// Prints objects with equal keys as CSV (RFC 4180): a line of keys, then a line for each object. A
// key in a nested object becomes "link.latency_ns"; a list is one cell of JSON. Prints nothing if
// there are no objects.
void print_csv(const nlohmann::ordered_json& rows);
// Prints the line of one object, with the line of keys before it if `with_keys`.
void print_csv_row(const nlohmann::ordered_json& row, bool with_keys);

}  // namespace ferry::cli
