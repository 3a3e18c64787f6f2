// The command line of `ferry run [OPTIONS] SCRIPT|-m MODULE|-c CODE [ARGS…]`. Options of the script
// itself come after the script and are not looked at. This file repeats numbers of the
// runtime's headers and does not include them, so that ferry-run needs no CUDA headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/hardware.h"

namespace ferry::vgpu {

// The same codes as in cli/console/exit_codes.h.
inline constexpr int kOk = 0;
inline constexpr int kViolated = 1;
inline constexpr int kUsage = 2;
inline constexpr int kResourceMissing = 7;
inline constexpr int kNotJudged = 8;
inline constexpr int kInternal = 70;
inline constexpr int kStoppedBase = 128;

// Says which kernels compute: the values of KernelValues (vgpu/runtime/control.h).
enum class ComputedValues : int { kComputed = 0, kRefused = 1, kZeros = 2 };

// Says when the work of streams runs: values of Tempo (vgpu/runtime/control.h).
enum class Schedule : int { kEager = 0, kRandom = 2, kMixed = 3, kSideFirst = 4, kMainFirst = 5 };

struct Card {
  Hardware hardware;
  std::string file;
};

// The policies that have a name (vgpu/python/ferry_policies.py). Any other policy is a plan's file.
inline constexpr const char* kPolicies[] = {
    "keep",    "offload",         "checkpoint",        "checkpoint-offload",
    "compile", "compile-offload", "compile-checkpoint"};

// The setting of one run.
struct Setting {
  const Card* card;
  std::string policy;
  std::string allocator;  // for PYTORCH_CUDA_ALLOC_CONF; "": as in the environment
  std::uint64_t seed = 0;
};

// Each combination of a card, an allocator, a policy and a seed is one run. Each list has at least
// one element.
struct Options {
  std::vector<Card> cards;
  std::vector<std::string> policies = {"keep"};
  std::vector<std::string> allocators = {""};
  bool segments_go_up = false;
  int card_count = 1;  // how many of each card
  Schedule schedule = Schedule::kRandom;
  bool timed = true;       // the simulated time answers the script's queries
  std::uint64_t seed = 0;  // the first seed
  std::uint64_t seeds = 1;
  ComputedValues values = ComputedValues::kComputed;
  std::string log;          // "": no log is kept
  std::string trace;        // "": none
  std::string snapshot;     // "": none
  std::string json, sarif;  // files for the verdict; "": none
  std::string python = "python3";
  bool hide_gpu = false;
  bool requires_judged = false;  // the run fails if not all of it was judged
  // The script's path, or -m and a module, or -c and code; then its arguments.
  std::vector<std::string> script;

  // All settings, ordered by card, then by allocator, policy and seed.
  std::vector<Setting> settings() const;
};

// Returns nullopt after it has printed help or the version. Throws InputError for bad input.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace ferry::vgpu
