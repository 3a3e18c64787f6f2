// A model of the L2 cache: which bytes an operator reads from it.
//
// The cache has the tensors that the previous operator in the same code made or wrote in place, if
// a tensor's storage fits in the cache completely. So the first operator of a node's backward finds
// the gradients that the previous node made. Bytes in the cache are read at the cache's rate, not
// at the memory's (scenarios/roofline.h).
//
// The result depends on the program, not on a run: an operator takes the same time in forward and
// when it is recomputed. So no plan can gain from an order that this model favours, and the lower
// bound holds (docs/explanation/lower-bound.md). Tensors of earlier operators, and parts of tensors
// that do not fit, are not modelled. A storage whose size the code does not say (a global, a
// segment's argument, a saved tensor in a body) counts as not in the cache.
#pragma once

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

// Sets `cached_bytes` of each operator; all 0 if the card's file has no L2 cache.
void find_in_l2(const Hardware& hardware, Program& program);

}  // namespace ferry
