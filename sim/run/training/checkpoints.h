// The core's checkpoints and spans on the simulated device, compiled once, in checkpoints.cpp. A
// file that includes this and uses them on one of these devices compiles only its own calls.
//
// The devices are the simulated one, and the same with a step that is wrong (Bent) or fails
// (Faulty).
#pragma once

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/checkpoint/checkpointer.h"
#include "shared/replay/replayer.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/segments.h"

namespace ferry {

// NOLINTBEGIN(bugprone-macro-parentheses): D is a type.
#define FERRY_CHECKPOINTS_ON(PREFIX, D)                       \
  PREFIX template class CheckpointFrame<D, sim::SimAutograd>; \
  PREFIX template class Checkpointer<D, sim::SimAutograd>;    \
  PREFIX template class ReplaySpan<D, sim::SimAutograd>;      \
  PREFIX template class Replayer<D, sim::SimAutograd>;
// NOLINTEND(bugprone-macro-parentheses)

FERRY_CHECKPOINTS_ON(extern, sim::SimDevice)
FERRY_CHECKPOINTS_ON(extern, Bent<sim::SimDevice>)
FERRY_CHECKPOINTS_ON(extern, Faulty<sim::SimDevice>)
extern template class sim::Segments<sim::SimDevice>;
extern template class sim::Segments<Bent<sim::SimDevice>>;
extern template class sim::Segments<Faulty<sim::SimDevice>>;

}  // namespace ferry
