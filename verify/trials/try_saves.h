// What may become of saved tensors that no drawn program does to them: an offloader on a device
// that is odd (verify/trials/odd_device.h), driven by hand.
//
// A number draws a life: tensors of sizes about the bounds are made, saved whole and in part,
// written, given other storages, or their storages other memory; some are exempt; backwards unpack
// what was saved. What comes back has the contents that were saved, or is refused; what the host
// has no room for stays, or the caller is told; a wait that fails is told once, and the next try
// works; at the end nothing is left. The accounts (verify/oracles/accounts.h) say what moves.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_saves(std::uint64_t number, const Rules& rules = {});

}  // namespace ferry::verify
