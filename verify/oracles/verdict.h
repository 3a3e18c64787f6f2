// A verdict says which oracle objects to a run, and why. verify/README.md says what each oracle
// checks.
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
  kLifetime,       // memory is used before its allocation or after its free
  kValue,          // a read or a gradient has a wrong value
  kLiveness,       // the run hangs
  kPool,           // a pool breaks a promise
  kError,          // an error differs, or its cause is lost
  kLeak,           // something is left after the step or after a backward
  kMoves,          // a copy or a wait that is not needed
  kCount,          // an op ran more or less often than the rules of nesting say
  kBound,          // a stash exceeds its limit
  kDeterminism,    // the same run issues other operations when it is made again
  kSchedule,       // an order of the device shows a wrong value, but no race was reported
  kAccounts,       // the offloader's decisions or statistics differ from the model
  kCut,            // stages or segments are cut in the wrong places
  kPlace,          // a kernel runs on another device than its memory
  kVersion,        // a write to a saved tensor gives no error where it must, or one elsewhere
  kInvariant,      // an assertion of the core fails
  kException,      // another exception was thrown
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
  std::optional<check::Hazard> hazard = {};  // what the checkers reported, if they found it
};

// Returns, for example, "leak: left after the step: 2 events".
inline std::string to_string(const Verdict& verdict) {
  return std::string(name(verdict.oracle)).append(": ").append(verdict.words);
}

}  // namespace ferry::verify
