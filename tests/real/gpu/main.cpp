// The tests that need a GPU, as one program. Exits with 77, and the reason, where there is none.
//
//   ferry_gpu_tests --probe     what GPUs there are, as one line of JSON, and no test
//
// Built on one machine it runs on another that has the same wheel, found by LD_LIBRARY_PATH:
// the wheel's torch/lib and nvidia/cu13/lib.
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <iomanip>
#include <iostream>
#include <string_view>

#include "real/train/deterministic.h"

namespace {

void probe() {
  int devices = 0;
  int driver = 0;
  int runtime = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&devices));
  C10_CUDA_CHECK(cudaDriverGetVersion(&driver));
  C10_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  std::cout << "{\"driver\":" << driver << ",\"runtime\":" << runtime << ",\"gpus\":[";
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp properties{};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    std::cout << (device > 0 ? "," : "") << "{\"name\":" << std::quoted(properties.name)
              << ",\"bytes\":" << properties.totalGlobalMem
              << ",\"multiprocessors\":" << properties.multiProcessorCount << ",\"capability\":\""
              << properties.major << '.' << properties.minor << "\"}";
  }
  std::cout << "]}\n";
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!torch::cuda::is_available()) {
    std::cout << "skipped: no GPU: LibTorch sees no CUDA device (no driver, or none visible)\n";
    return 77;
  }
  if (argc > 1 && std::string_view(argv[1]) == "--probe") {
    probe();
    return 0;
  }
  ferry::real::train::be_deterministic();  // steps are compared bit by bit
  return RUN_ALL_TESTS();
}
