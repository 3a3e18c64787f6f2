// LibTorch's modes in a training: deterministic algorithms, so that a step's bits depend on the
// state before it alone. What measures a training sets the same.
#pragma once

namespace ferry::real::train {

// For the process. Before the first handle of cuBLAS.
void be_deterministic();

}  // namespace ferry::real::train
