// Checks for leaks: what is left after the program of a run has dropped everything. lives.h and
// lifespans.h find recomputed tensors that are freed before the end, but too late.
#pragma once

#include <optional>
#include <string>

#include "sim/run/training/result.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

inline std::optional<Verdict> judge_leaks(const sim::Leftovers& left) {
  if (!left.any()) return std::nullopt;
  std::string words = "left after the step:";
  const auto add = [&words](std::int64_t count, const char* what) {
    if (count != 0) words.append(" ").append(std::to_string(count)).append(what);
  };
  add(left.storages, " storages");
  add(left.events, " events");
  add(left.host_bytes, " host bytes");
  if (left.core) words.append(" entries of the core");
  return Verdict{Oracle::kLeak, words};
}

}  // namespace ferry::verify
