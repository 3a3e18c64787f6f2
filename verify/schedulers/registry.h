// Schedulers of other systems, each with a published fault and, if a fix is known, without it. They
// measure the oracles (`ferry verify --schedulers`): every faulty one must be caught by the oracle
// that fits its cause, and every fixed one must be clean.
//
// Each entry has one fault. Other faults of the same system are left out, by the policy or by
// `limit`, which removes from a random step what the scheduler was never made for. Sources are
// issues (#), pull requests (PR) and commits in the system's repository.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "formats/program.h"
#include "verify/hunted/hunted.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/recipe.h"
#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {

struct SchedulerEntry {
  std::string_view name;    // torchtune-1860, or torchtune-1860-fixed without the fault
  std::string_view system;  // torchtune
  bool faulty = false;
  std::string_view what;              // what is wrong, or how it was fixed
  std::string_view source;            // PR #1860
  std::optional<Oracle> oracle = {};  // the oracle that must catch it
  std::string_view fixed = "";  // name of the fixed entry; empty: it is fixed, or no fix is known
  std::unique_ptr<sim::Scheduler> (*make)(sim::SimDevice, sim::SimAutograd) = nullptr;
  void (*limit)(Recipe&) = nullptr;  // removes from random steps what it does not support
  Program (*program)(std::uint64_t number) = nullptr;  // replaces the random steps
  bool moves_all = false;                              // except parameters and small tensors
};

std::span<const SchedulerEntry> schedulers();
// Returns null if there is no entry with this name.
const SchedulerEntry* find_scheduler(std::string_view name);

// Returns the entry as a scheduler that a hunt can test (ferry/verify.h).
HuntedScheduler hunted(const SchedulerEntry& entry);
// Finds an entry of the registry by name; null if there is none. It lives as long as the process.
const HuntedScheduler* find_hunted(std::string_view name);

}  // namespace ferry::verify::schedulers
