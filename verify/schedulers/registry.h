// The schedulers of the field, each with its fault and, where one is known, without it: what the
// checkers are measured by. Every faulty one must be caught, and by the oracle that fits its cause;
// every fixed one must be clean.
//
// One entry is one fault. Faults that a system has besides are left out of it: by the policy, or,
// where they come with the design, by `limit`, which takes out of a random step what the scheduler
// was never made for. Sources are issues (#), pull requests (PR) and commits of the system's
// repository.
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
  std::string_view name;    // torchtune-1860; its fixed counterpart: torchtune-1860-fixed
  std::string_view system;  // torchtune
  bool faulty = false;
  std::string_view what;              // what is wrong, or what was done about it
  std::string_view source;            // PR #1860
  std::optional<Oracle> oracle = {};  // the one that must catch a faulty scheduler
  std::string_view fixed = "";  // the counterpart's name; empty: this is one, or none is known
  std::unique_ptr<sim::Scheduler> (*make)(sim::SimDevice, sim::SimAutograd) = nullptr;
  void (*limit)(Recipe&) = nullptr;  // changes the random steps that it is tried on
  Program (*program)(std::uint64_t number) = nullptr;  // replaces the random steps
  bool moves_all = false;                              // parameters and small tensors aside
};

std::span<const SchedulerEntry> schedulers();
// Returns null where there is none of that name.
const SchedulerEntry* find_scheduler(std::string_view name);

// The entry as any user's scheduler is hunted (ferry/verify.h).
HuntedScheduler hunted(const SchedulerEntry& entry);
// Of an entry of the registry; null where there is none of that name. It lives as long as the
// program.
const HuntedScheduler* find_hunted(std::string_view name);

}  // namespace ferry::verify::schedulers
