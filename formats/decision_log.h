// The decision log: an offloader's decisions, in order. Both worlds write it, without times and
// addresses, so that one run can be held against the other (`ferry replay`).
//
// JSON lines. Line 1 states the options; a line for each decision follows:
//
//   {"ferry":"decisions","schema":1,"options":{"host_memory":0,…,"hold_bytes":0},"moves":[1,2]}
//   {"decision":"pack","run":1,"pack":1,"bytes":4096}
//
// `options` are those of a plan file (plan_options.h), all of them. `moves` stands where a plan
// chose: the packs of a run that may move, ascending; without it all may. decisions: pack, evict,
// prefetch, unpack, release, return, recompute. Bytes are integers.
//
// The reader refuses, with file and line: malformed JSON, an unknown, missing or duplicate key, a
// wrong type, an option without sense. Written whole or not at all.
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

// Lines with their ends, for callers that write a log piece by piece.
std::string decision_header(const CoreOptions& options);
std::string decision_line(const Decision& decision);

void write_decision_log(const std::filesystem::path& path, const DecisionLog& log);

DecisionLog parse_decision_log(std::string_view text, const std::string& file);
DecisionLog read_decision_log(const std::filesystem::path& path);

}  // namespace ferry
