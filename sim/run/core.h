// The core on the simulated device, compiled once, in core.cpp: a file that includes this and uses
// the offloader or a checkpointer on one of these devices compiles only its own calls. Without it a
// file that runs the core takes three times as long to compile.
//
// The devices are the simulated one, and that with a step that is taken wrongly or that fails.
#pragma once

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/checkpoint/checkpointer.h"
#include "shared/offload/offloader.h"
#include "shared/replay/replayer.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/segments.h"

namespace ferry {

// The core's larger templates for a device
// D.
#define FERRY_CORE_ON(PREFIX, D)                              \
  PREFIX template class Outbound<D>;                          \
  PREFIX template class Inbound<D>;                           \
  PREFIX template class OffloadCore<D, sim::SimAutograd>;     \
  PREFIX template class Offloader<D, sim::SimAutograd>;       \
  PREFIX template class CheckpointFrame<D, sim::SimAutograd>; \
  PREFIX template class Checkpointer<D, sim::SimAutograd>;    \
  PREFIX template class ReplaySpan<D, sim::SimAutograd>;      \
  PREFIX template class Replayer<D, sim::SimAutograd>;
// NOLINTEND(bugprone-macro-parentheses)

FERRY_CORE_ON(extern, sim::SimDevice)
FERRY_CORE_ON(extern, Bent<sim::SimDevice>)
FERRY_CORE_ON(extern, Faulty<sim::SimDevice>)
extern template class sim::Segments<sim::SimDevice>;
extern template class sim::Segments<Bent<sim::SimDevice>>;
extern template class sim::Segments<Faulty<sim::SimDevice>>;

}  // namespace ferry
