// The hazard file (formats/HAZARD.md): a program's stream log, what is wrong with it, and an order
// of the device that shows it.
//
// The reader checks only each line by itself. sim/explore/log_verdict.h checks if the verdicts
// hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/line_source.h"
#include "formats/stream_log.h"
#include "formats/stream_op.h"

namespace ferry {

// Lines count from 1, which is the header.
struct HazardVerdict {
  std::string kind;
  std::uint64_t earlier = 0;  // 0: there is only one operation
  std::uint64_t later = 0;
  bool operator==(const HazardVerdict&) const = default;
};

struct HazardFile {
  std::string system;
  std::string what;
  std::string source;
  std::vector<HazardVerdict> verdicts;
  std::string schedule;  // empty: there is none
  std::string seen;
  std::string log;  // the lines after the header, with their ends

  // Calls f(line, op) for each operation. Throws InputError like StreamLogReader.
  template <class F>
  void each(F&& f) const {
    std::istringstream in(log);
    LineSource lines(in, system);
    StreamLogReader reader(system);
    std::string_view text;
    StreamOp op;
    while (lines.next(text)) {
      if (reader.read(text, lines.number() + 1, op)) f(lines.number() + 1, std::as_const(op));
    }
  }
};

// Throw InputError with the line and what was expected.
HazardFile parse_hazard(const std::string& text, const std::string& file);
HazardFile read_hazard(const std::filesystem::path& path);

std::string to_text(const HazardFile& hazard);

}  // namespace ferry
