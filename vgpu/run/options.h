// The command line of `ferry run [OPTIONS] SCRIPT|-m MODULE|-c CODE [ARGS…]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/hardware.h"

namespace ferry::vgpu {

// As cli/console/exit_codes.h has them.
inline constexpr int kOk = 0;
inline constexpr int kViolated = 1;
inline constexpr int kUsage = 2;
inline constexpr int kResourceMissing = 7;
inline constexpr int kNotJudged = 8;
inline constexpr int kInternal = 70;
inline constexpr int kStoppedBase = 128;

// What kernels compute (vgpu/runtime/control.h, whose KernelValues these are).
enum class ComputedValues : int { kComputed = 0, kRefused = 1, kZeros = 2 };

// When streams' work runs (vgpu/runtime/control.h, whose Tempo these are).
enum class Schedule : int { kEager = 0, kRandom = 2, kMixed = 3, kSideFirst = 4, kMainFirst = 5 };

struct Card {
  Hardware hardware;
  std::string file;
};

// What is put around the script's models (vgpu/python/ferry_policies.py), if it is no plan's file.
inline constexpr const char* kPolicies[] = {"keep", "offload", "checkpoint", "checkpoint-offload"};

// Each run is of one of each: there is at least one of each.
struct Setting {
  const Card* card;
  std::string policy;
  std::string allocator;  // as PYTORCH_CUDA_ALLOC_CONF has it; "": as the environment says
  std::uint64_t seed = 0;
};

struct Options {
  std::vector<Card> cards;
  std::vector<std::string> policies = {"keep"};
  std::vector<std::string> allocators = {""};
  bool segments_go_up = false;
  int card_count = 1;  // so many of it
  Schedule schedule = Schedule::kRandom;
  bool timed = true;       // what the script asks is done when it would be on the card
  std::uint64_t seed = 0;  // the first of them
  std::uint64_t seeds = 1;
  ComputedValues values = ComputedValues::kComputed;
  std::string log;          // "": none is kept
  std::string trace;        // "": none
  std::string snapshot;     // "": none
  std::string json, sarif;  // files for the verdict; "": none
  std::string python;
  bool hide_gpu = false;
  bool requires_judged = false;  // it is an error where not all was judged
  // Its path, or -m and a module, or -c and code; and its arguments.
  std::vector<std::string> script;

  // Card by card, and within one policy by policy, and within that seed by seed.
  std::vector<Setting> settings() const;
};

// None: help or the version was asked for, and printed. Throws InputError for bad input.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace ferry::vgpu
