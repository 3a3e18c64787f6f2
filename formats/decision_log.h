// The decision log: an offloader's decisions, in order. The simulator and the real device write it,
// without times and addresses, so that two runs can be compared (`ferry replay`).
//
// JSON lines. Line 1 states the options; a line for each decision follows:
//
//   {"ferry":"decisions","schema":1,"options":{"host_memory":0,…,"hold_bytes":0},"moves":[1,2]}
//   {"decision":"pack","run":1,"pack":1,"bytes":4096}
//
// `options` has all options of a plan file (plan_options.h). If a plan chose, `moves` lists the
// packs of a run that may move, in ascending order; without it, all may move. The decisions are
// pack, evict, prefetch, unpack, release, return and recompute. Bytes are integers.
//
// These are errors with file and line: malformed JSON, a missing or duplicate key, a wrong type, an
// unknown option or an invalid value. The file is written completely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "shared/seam/options.h"

namespace ferry {

struct DecisionLog {
  CoreOptions options;  // holds no callbacks
  std::vector<Decision> decisions;
  std::vector<std::uint64_t> lines;  // the line of each decision in its file
};

std::string_view name(DecisionKind kind);

// Return a line with its end, for callers that write a log piece by piece.
std::string decision_header(const CoreOptions& options);
std::string decision_line(const Decision& decision);

void write_decision_log(const std::filesystem::path& path, const DecisionLog& log);

DecisionLog parse_decision_log(std::string_view text, const std::string& file);
DecisionLog read_decision_log(const std::filesystem::path& path);

}  // namespace ferry
