// The size of the workspace that PyTorch gives cuBLAS. PyTorch 2.12 declares the function that
// returns it and does not define it, so there it is computed from the device and the environment,
// by the sizes that the simulator uses.
#pragma once

#include <ATen/cuda/CUDAContextLight.h>
#include <torch/version.h>

#include <cstddef>

#if TORCH_VERSION_MINOR == 12
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>
#include <optional>

#include "formats/error.h"
#include "scenarios/cuda_memory.h"
#endif

namespace ferry::vgpu {

#if TORCH_VERSION_MINOR == 12
inline std::size_t cublas_workspace_bytes() {
  int major = 0;
  int minor = 0;
  const int device = c10::cuda::current_device();
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  Hardware card;
  card.compute_capability = major * 10 + minor;
  std::optional<std::int64_t> bytes;
  if (const char* const config = std::getenv("CUBLAS_WORKSPACE_CONFIG")) {
    try {
      bytes = parse_workspace_config(config, "CUBLAS_WORKSPACE_CONFIG");
    } catch (const InputError&) {  // PyTorch warns and takes the default
    }
  }
  constexpr auto kCublas = static_cast<std::size_t>(WorkspaceLibrary::kCublas);
  return static_cast<std::size_t>(workspaces_of(card, bytes)[kCublas]);
}
#else
inline std::size_t cublas_workspace_bytes() { return at::cuda::getChosenWorkspaceSize(); }
#endif

}  // namespace ferry::vgpu
