// The matrix products that an operator's kernels compute, and its FLOPs.
//
// A convolution is a product as well, whose first matrix no memory has (implicit GEMM, as cuDNN
// computes it: Chetlur et al., 1410.0759; NVIDIA's "Convolutional Layers User's Guide"). With N
// images, K output channels, C input channels, P × Q places of the output and R × S of the filter:
//
//                            m        n        k
//   the output               N·P·Q    K        C·R·S
//   the input's gradient     N·P·Q    C        K·R·S
//   the weight's gradient    K        C·R·S    N·P·Q
//
// A stride cuts the input's gradient into phases of about P × Q places, which share the filter's
// taps: as many FLOPs in all. A transposed convolution computes what is an input's gradient of the
// other kind, and the other way round. Not known: how kernels of grouped convolutions cut their
// work; those have FLOPs alone.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/op_call.h"
#include "formats/program.h"

namespace ferry {

// As many FLOPs as op_flops, or none.
std::vector<MatrixProduct> op_products(const OpCall& call);

// Of matmuls, convolutions and attention: of causal attention those of the pairs that the mask
// leaves, for its kernels skip the others (PyTorch's flop counter counts all).
std::int64_t op_flops(const OpCall& call);

// How the names of kernels of attention begin.
inline constexpr std::string_view kAttention = "aten._scaled_dot_product";
inline bool is_attention(std::string_view name) { return name.starts_with(kAttention); }

}  // namespace ferry
