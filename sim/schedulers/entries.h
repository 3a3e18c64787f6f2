// The parts of the registry.
#pragma once

#include <span>

#include "sim/schedulers/registry.h"

namespace ferry::sim {

std::span<const SchedulerEntry> stash_entries();  // torchtune and TRL
std::span<const SchedulerEntry> other_entries();

}  // namespace ferry::sim
