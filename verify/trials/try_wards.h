// Uses wards (shared/state/wards.h) as a training does whose optimizer state lives on the host.
//
// A number selects the wards, the bounds and a random sequence of steps. In each step wards are
// taken, mostly in the order of the step before, on one stream or another. Some are written, some
// are given back, some are taken twice or not at all. Other tensors come and go, so that blocks are
// reused. In some runs a call of the device fails once, or streams stand for host threads. A ward
// must have the contents that were written last, an error must name its cause, and at the end
// nothing may be left.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/adaptors/bent.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_wards(std::uint64_t number, std::optional<Mutation> mutation = {});

}  // namespace ferry::verify
