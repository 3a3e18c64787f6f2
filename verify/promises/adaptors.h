// What an adaptor of a device hears and does: an observer is told of each call before it is made,
// with its step and its bytes; the call that is to fail fails, once; and all else is as the device
// itself says.
#pragma once

#include <functional>
#include <optional>

#include "shared/adaptors/observed.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// `hears`: what an observer does with a call that it is told of.
using Hears = std::function<DeviceCall(DeviceCall)>;
std::optional<Verdict> judge_adaptors(choices::Draws& draws, const Hears& hears = nullptr);

}  // namespace ferry::verify
