// Runs one fixed case of exempt tensors through an offloader. Some of the tensors stay alive, many
// do not. Campaigns run it in a closer look (verify/core/core_trials.cpp).
//
// The offloader must not move exempt tensors, and must move others. It must find entries of dead
// tensors cheaply and keep few of them, or its memory would grow as long as a training lasts. If it
// is the last owner of a storage while it looks for dead entries, it must not drop the storage
// under its lock.
//
// Programs and backward are not tested here (try_core.h does that).
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first fault, or nothing. `rules` may contain a mutant, which the case should find.
std::optional<Verdict> try_exempt(const Rules& rules = {});

}  // namespace ferry::verify
