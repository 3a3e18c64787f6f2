// The size of the workspace that PyTorch gives cuBLAS, and how long it has it.
//
// PyTorch 2.12 declares the function that returns the size and does not define it, so there it is
// computed from the device and the environment, by the sizes that the simulator uses. Since 2.15
// each call takes a workspace and gives it back, unless TORCH_CUBLAS_WORKSPACE_CACHE is 1; then
// cuBLASLt uses cuBLAS's, unless TORCH_CUBLASLT_UNIFIED_WORKSPACE is 0.
#pragma once

#include <ATen/cuda/CUDAContextLight.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

#if TORCH_VERSION_MINOR == 12
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

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

#if TORCH_VERSION_MINOR >= 15
inline bool keeps_cublas_workspaces() { return at::cuda::isCUDABlasWorkspaceCachingEnabled(); }
inline bool shares_kept_workspaces() {
  const char* const unified = std::getenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE");
  return unified == nullptr || std::string_view(unified) != "0";
}
#else
inline bool keeps_cublas_workspaces() { return true; }
inline bool shares_kept_workspaces() { return false; }
#endif

}  // namespace ferry::vgpu
