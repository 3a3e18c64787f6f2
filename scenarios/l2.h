// What an operator still finds in the L2 cache.
//
// That is what the operator before it, in the same code, made or wrote in place, if the tensor's
// storage fits in the cache as a whole. The first operator of a node's backward so finds the
// gradients that the node before just made. What is found is read at the cache's rate, not at the
// memory's (scenarios/roofline.h).
//
// It is a property of the program, not of a run: an operator that is recomputed or replayed takes
// what it takes in forward, so no plan can gain by an order that the model favours, and the bound
// of docs/lower-bound.md holds. Not modelled: what is still there of earlier operators, and parts
// of tensors that do not fit.
#pragma once

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

// Sets `cached_bytes` of each operator. All 0 where the hardware states no L2.
void find_in_l2(const Hardware& hardware, Program& program);

}  // namespace ferry
