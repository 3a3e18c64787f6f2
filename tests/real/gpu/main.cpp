// The tests that need a GPU, as one program. Exits with 77, and the reason, where there is none.
//
// Built on one machine it runs on another that has the same wheel, found by LD_LIBRARY_PATH:
// the wheel's torch/lib and nvidia/cu13/lib.
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <iostream>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!torch::cuda::is_available()) {
    std::cout << "skipped: no GPU: LibTorch sees no CUDA device (no driver, or none visible)\n";
    return 77;
  }
  return RUN_ALL_TESTS();
}
