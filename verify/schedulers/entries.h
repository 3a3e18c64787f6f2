// The entries of the registry (registry.h), in two parts.
#pragma once

#include <span>

#include "verify/schedulers/registry.h"

namespace ferry::verify::schedulers {

std::span<const SchedulerEntry> torchtune_and_trl_entries();
std::span<const SchedulerEntry> other_entries();

}  // namespace ferry::verify::schedulers
