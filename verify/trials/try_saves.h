// Uses saved tensors in ways that no random program does: drives an offloader on a device with
// unusual conditions (verify/trials/odd_device.h) by hand.
//
// A number selects a random sequence of steps. Tensors with sizes around the limits are made, saved
// whole and in part, written, and given other storages or other memory. Some are exempt. Backwards
// unpack what was saved. An unpacked tensor must have the saved contents, or the unpack must fail.
// If the host has no room, the tensor stays or the caller gets an error. A failing wait is reported
// once, and the next try works. At the end nothing may be left. The model in
// verify/oracles/accounts.h says what must move.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_saves(std::uint64_t number, const Rules& rules = {});

}  // namespace ferry::verify
