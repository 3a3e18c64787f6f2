// LibTorch's modes in a training: deterministic algorithms, so that a step's bits depend on the
// state before it alone. What measures a training sets the same.
#pragma once

namespace ferry::real::train {

// Applies to the process. Call it before cuBLAS makes its first handle.
void be_deterministic();

}  // namespace ferry::real::train
