// Prints results on stdout. Names come from files that anybody may have written: control characters
// in them are escaped, and invalid UTF-8 does not end the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ferry::cli {

// Prints lines; everything but their ends is made printable.
void print_text(std::string_view text);
// Prints ASCII only.
void print_json(const nlohmann::ordered_json& json);
// Prints objects with equal keys as lines (RFC 4180) below one line of keys: a key of a nested
// object is "link.latency_ns", and a list is one cell of JSON. No objects print nothing.
void print_csv(const nlohmann::ordered_json& rows);
// One of these lines, below the line of keys or without it.
void print_csv_row(const nlohmann::ordered_json& row, bool with_keys);

}  // namespace ferry::cli
