// A table of owners of memory for a terminal: bytes, their share as a figure and as a bar, the
// number of blocks or of other parts, and what owns them. `ferry explain`, `ferry run` and
// `ferry plan` print it.
//
// A line is cut at no width: places in programs are long, and a terminal wraps them. Bars are
// ASCII, so that logs of batch systems show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::peak {

struct BarLine {
  std::int64_t bytes = 0;
  std::uint64_t parts = 0;
  std::vector<std::string> cells;  // more columns, as many as BarTable::titles
  std::string text;                // the last column
};

struct BarTable {
  std::vector<std::string> titles;  // of BarLine::cells
  std::string text_title;
  std::string parts_title = "blocks";
  std::int64_t whole_bytes = 0;  // the base of the shares; positive
  std::size_t lines_most = 20;   // the smallest owners above this number become one line
};

// Returns "34.1 %"; `whole` is positive.
std::string share(std::int64_t part, std::int64_t whole);

// Returns the table, largest first (equal ones in their order), each line indented by two columns.
// The sum of the lines that are left out is a line at the end.
std::string to_text(const BarTable& table, std::vector<BarLine> lines);

}  // namespace ferry::peak
