#include "real/train/deterministic.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace ferry::real::train {

void be_deterministic() {
  // cuBLAS needs this, and reads it when its first handle is made.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setBenchmarkCuDNN(false);
  // Filling unused memory helps to find bugs but takes time.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

}  // namespace ferry::real::train
