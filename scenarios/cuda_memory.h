// What CUDA's libraries and kernels allocate besides an operator's results.
//
// A workspace of cuBLAS is made by the first matrix product of a host thread on a stream, and kept
// for good. cuBLASLt, which adds a bias of one dimension, has one of its own beside it. Temporaries
// are taken while an operator is launched and given back at once: partial sums, sorted indices,
// gradients in single precision. All sizes are in bytes.
//
// Sources: aten/src/ATen/cuda/CUDABlas.cpp (sizes by card, CUBLAS_WORKSPACE_CONFIG), and for
// temporaries the host code in aten/src/ATen/native/cuda (Reduce.cuh, EmbeddingBackwardKernel.cu,
// SoftMax.cu) and of the attentions' backwards (flash_api.cpp; transformers/cuda/
// attention_backward.cu with kernel_backward.h of mem_eff_attention), as in LibTorch 2.11. Not
// there: what sorting, norms, convolutions and cuDNN take, which is small or not known.
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

// The sum of the pairs of CUBLAS_WORKSPACE_CONFIG, ":KIB:COUNT" again and again. Throws InputError,
// which names `where`.
std::int64_t parse_workspace_config(std::string_view text, const std::string& where);

// Of a card whose capability is known; others have none. `config_bytes`: what the environment says.
WorkspaceBytes workspaces_of(const Hardware& hardware,
                             std::optional<std::int64_t> config_bytes = std::nullopt);

// The card as kernels see it that share their work out.
struct Multiprocessors {
  std::int64_t count = 0;  // 0: not known, and then no kernel is known to split its sums
  std::int64_t threads_each = 2048;
};
Multiprocessors multiprocessors_of(const Hardware& hardware);

// Whether an operator ("aten.mm") may ask for any of it, whatever its arguments are.
bool takes_cuda_memory(std::string_view op);
// Which libraries' workspaces the operator needs, by its tensor arguments' layouts in their order.
// An argument that is no tensor is null.
std::array<bool, kWorkspaceLibraries> libraries_of(std::string_view op,
                                                   std::span<const Layout* const> arguments);
// In this order: each piece's bytes as it is taken, and -k where the k-th of them is given back
// before the operator's end. What is left goes then, the last one first.
std::vector<std::int64_t> temporaries_of(std::string_view op,
                                         std::span<const Layout* const> arguments,
                                         std::span<const Layout* const> results,
                                         const Multiprocessors& card);
// Whether the operator makes its last result first: dropout makes its mask, then what it masks.
bool makes_last_result_first(std::string_view op);

}  // namespace ferry
