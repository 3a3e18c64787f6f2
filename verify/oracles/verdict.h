// A verdict: which oracle objects to a run, and what it says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/check/hazard.h"

namespace ferry::verify {

enum class Oracle : std::uint8_t {
  kHappensBefore,  // two accesses race
  kLifetime,       // something is used that is not there
  kValue,          // a read or a gradient has another value
  kLiveness,       // the run hangs
  kPool,           // a pool does what it promised not to do
  kError,          // an error is another one, or its cause is lost
  kLeak,           // something is left after the step, or after a backward
  kMoves,          // a copy, or a wait, that nobody needed
  kCount,          // an op ran more or less often than the rules of nesting say
  kBound,          // a stash is beyond its bound
  kDeterminism,    // run again, the same program runs in another way
  kSchedule,       // an order of the device shows another value, and no race was reported
  kAccounts,       // the offloader moved something else, or counts otherwise
  kCut,            // stages or segments are cut otherwise than they should be
  kPlace,          // a kernel runs on another device than its memory's
  kVersion,        // a tensor that was written is not refused where it must be, or one is elsewhere
  kInvariant,      // an invariant that the core asserts does not hold
  kException,      // something else was thrown
};
inline constexpr std::array<std::string_view, 18> kOracleNames = {
    "happens-before", "lifetime", "value", "liveness", "pool",        "error",
    "leak",           "moves",    "count", "bound",    "determinism", "schedule",
    "accounts",       "cut",      "place", "version",  "invariant",   "exception"};
constexpr std::string_view name(Oracle oracle) {
  return kOracleNames[static_cast<std::size_t>(oracle)];
}

struct Verdict {
  Oracle oracle = Oracle::kException;
  std::string words;
  std::optional<check::Hazard> hazard = {};  // what the checkers reported, where they did
};

// "leak: left after the step: 2 events".
inline std::string to_string(const Verdict& verdict) {
  return std::string(name(verdict.oracle)).append(": ").append(verdict.words);
}

}  // namespace ferry::verify
