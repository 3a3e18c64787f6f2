// LibTorch's modes for training. Algorithms are deterministic, so the bits of a step depend only on
// the state before it. `ferry calibrate` uses the same modes.
#pragma once

namespace ferry::real::train {

// It affects the whole process. Call it before cuBLAS makes its first handle.
void be_deterministic();

}  // namespace ferry::real::train
