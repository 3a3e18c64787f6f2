// The memory that CUDA's libraries and kernels allocate besides an operator's results.
//
// cuBLAS allocates a workspace at the first matrix product of a host thread on a stream, and never
// frees it. cuBLASLt, which adds a bias of one dimension, has a second one. Temporaries are
// allocated while an operator is launched and freed at once: partial sums, sorted indices, and
// gradients in single precision. All sizes are in bytes.
//
// Sources: aten/src/ATen/cuda/CUDABlas.cpp (sizes by card, CUBLAS_WORKSPACE_CONFIG), and for
// temporaries the host code in aten/src/ATen/native/cuda (Reduce.cuh, EmbeddingBackwardKernel.cu,
// SoftMax.cu) and of the attentions' backwards (flash_api.cpp; transformers/cuda/
// attention_backward.cu with kernel_backward.h of mem_eff_attention), as in LibTorch 2.11. The
// memory of sorting, norms, convolutions and cuDNN is not modelled: it is small or not known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

enum class WorkspaceLibrary : std::uint8_t { kCublas, kCublasLt };
inline constexpr std::size_t kWorkspaceLibraries = 2;
using WorkspaceBytes = std::array<std::int64_t, kWorkspaceLibraries>;  // 0: none

// Returns the sum of the pairs ":KIB:COUNT" in CUBLAS_WORKSPACE_CONFIG, in bytes. Throws InputError
// that names `where`.
std::int64_t parse_workspace_config(std::string_view text, const std::string& where);

// Returns the sizes of the workspaces on this card; all 0 if its compute capability is not known.
// `config_bytes` is the size from the environment.
WorkspaceBytes workspaces_of(const Hardware& hardware,
                             std::optional<std::int64_t> config_bytes = std::nullopt);

// The multiprocessors that a kernel can split its sums among.
struct Multiprocessors {
  std::int64_t count = 0;  // 0: not known; then no kernel splits its sums
  std::int64_t threads_each = 2048;
};
Multiprocessors multiprocessors_of(const Hardware& hardware);

// True if the operator ("aten.mm") may allocate such memory for some arguments.
bool takes_cuda_memory(std::string_view op);
// Says which libraries' workspaces the operator needs. `arguments` are the layouts of its arguments
// in their order; null for an argument that is no tensor.
std::array<bool, kWorkspaceLibraries> libraries_of(std::string_view op,
                                                   std::span<const Layout* const> arguments);
// Lists the operator's allocations in order. A positive number is the bytes of a new piece; -k
// frees the k-th piece. The pieces that are left are freed when the operator ends, last one first.
std::vector<std::int64_t> temporaries_of(std::string_view op,
                                         std::span<const Layout* const> arguments,
                                         std::span<const Layout* const> results,
                                         const Multiprocessors& card);
// True if the operator allocates its last result first: dropout allocates its mask before its
// output.
bool makes_last_result_first(std::string_view op);

}  // namespace ferry
