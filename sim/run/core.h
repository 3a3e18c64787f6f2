// The core on the simulated device, compiled once: the offloader in core.cpp, checkpoints and spans
// in sim/run/training. A file that includes this and uses them on one of these devices compiles
// only its own calls. Without it, a file that runs the core takes three times as long to compile.
// The devices are the simulated one, and the same with a step that is wrong (Bent) or fails
// (Faulty).
#pragma once

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/checkpoints.h"

namespace ferry {

// NOLINTBEGIN(bugprone-macro-parentheses): D is a type.
#define FERRY_OFFLOADER_ON(PREFIX, D)                     \
  PREFIX template class Inbound<D>;                       \
  PREFIX template class OffloadCore<D, sim::SimAutograd>; \
  PREFIX template class Offloader<D, sim::SimAutograd>;
// NOLINTEND(bugprone-macro-parentheses)

extern template class Outbound<sim::SimDevice>;
extern template class Outbound<Bent<sim::SimDevice>>;
extern template class Outbound<Faulty<sim::SimDevice>>;
FERRY_OFFLOADER_ON(extern, sim::SimDevice)
FERRY_OFFLOADER_ON(extern, Bent<sim::SimDevice>)
FERRY_OFFLOADER_ON(extern, Faulty<sim::SimDevice>)

}  // namespace ferry
