// Uses frozen weights (shared/state/weights.h) as a training does whose weights live on the host.
//
// A number selects the weights, the modules that have them, the bound and a random sequence of
// passes. A pass is a forward, and mostly a backward after it: modules hold their weights, what is
// saved refers to them, some modules are computed again in backward, some references are unpacked
// twice or never. Other tensors come and go, so that blocks are reused. In some runs a call of the
// device fails once, a second stream computes, or streams stand for host threads. A weight must
// have its contents whenever it is used, no more may be on the device than is held and the bound
// allows, an error must name its cause, and at the end nothing may be left.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/adaptors/bent.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_weights(std::uint64_t number, std::optional<Mutation> mutation = {});

}  // namespace ferry::verify
