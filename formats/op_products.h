// The matrix products that an operator's kernels compute, and the operator's FLOPs.
//
// A convolution is also a product, whose first matrix is never stored in memory (implicit GEMM, as
// in cuDNN: Chetlur et al., 1410.0759; NVIDIA's "Convolutional Layers User's Guide"). With N
// images, K output channels, C input channels, P × Q positions of the output and R × S of the
// filter:
//
//                            m        n        k
//   the output               N·P·Q    K        C·R·S
//   the input's gradient     N·P·Q    C        K·R·S
//   the weight's gradient    K        C·R·S    N·P·Q
//
// With a stride, the gradient of the input has several phases of about P × Q positions, which share
// the taps of the filter, so the sum of FLOPs is the same. A transposed convolution computes the
// input's gradient of a plain one, and its input's gradient is a plain convolution. How kernels
// split grouped convolutions is not known; these have FLOPs but no products.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/op_call.h"
#include "formats/program.h"

namespace ferry {

// Returns products that have together as many FLOPs as op_flops; empty for other operators.
std::vector<MatrixProduct> op_products(const OpCall& call);

// Returns the FLOPs of matmuls, convolutions and attention; 0 for other operators. Causal attention
// counts only pairs that the mask leaves, because its kernels skip the others (PyTorch's flop
// counter counts all).
std::int64_t op_flops(const OpCall& call);

// The names of attention operators begin with one of these. The second is flash-attn's compiled
// module (vgpu/python/ferry_flash_attention.py).
inline constexpr std::string_view kAttention = "aten._scaled_dot_product";
inline constexpr std::string_view kFlashAttn = "flash_attn_2_cuda.";
inline bool is_attention(std::string_view name) {
  return name.starts_with(kAttention) || name.starts_with(kFlashAttn);
}

}  // namespace ferry
