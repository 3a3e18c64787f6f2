// Results on stdout. Names in them are files', and files are anybody's: a terminal gets no control
// characters of theirs, and what is no UTF-8 does not end the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ferry::cli {

// Lines, of which all but their ends is made printable.
void print_text(std::string_view text);
// In ASCII.
void print_json(const nlohmann::ordered_json& json);
// Objects that have the same keys, a line each (RFC 4180) below one of their keys: those of an
// object in it are "link.latency_ns", a list is a cell of JSON. Nothing of no objects.
void print_csv(const nlohmann::ordered_json& rows);

}  // namespace ferry::cli
