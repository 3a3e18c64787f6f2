// Where in a Python program an operator was called: "train.py:12 in step".
//
// It is the innermost frame of the calling thread that is not PyTorch's own file. An operator of a
// backward pass has none on its thread: it is called by the line that made its node in forward, as
// "the backward of train.py:12 in step", which nodes are matched with by their sequence number.
//
// Not covered: a gradient's sum and AccumulateGrad (named so), and graphs made on several threads,
// whose sequence numbers coincide: the later line is named.
#pragma once

namespace ferry::vgpu {

// From now on operators know their places (vgpu/runtime/control.h). The interpreter's lock is taken
// for a moment by each, so no operator may be called while it cannot be had.
void find_places();

}  // namespace ferry::vgpu
