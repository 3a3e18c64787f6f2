// Makes the outputs of Ferry's own nodes (recomputing.cpp, nodes.cpp), as PyTorch does for custom
// functions. These nodes have no forward derivative, and compiled autograd cannot trace them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "real/autograd/node_pointer.h"

namespace ferry::real {

using Outputs = std::vector<std::optional<at::Tensor>>;

// For compiled_args of Ferry's nodes: compiled autograd cannot read them.
[[noreturn]] inline void refuse_compiled(const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, what, ": compiled autograd cannot trace this; run this backward without it");
}

// Makes `outputs`, which have no graph, the outputs of `node`. If `node` is null they stay
// unchanged. An output that is also an input becomes a view of it. Undefined tensors become empty
// optionals.
inline Outputs wrap_outputs(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
                            const NodePointer& node) {
  using torch::autograd::variable_list;
  Outputs raw;
  for (at::Tensor& output : outputs) {
    raw.push_back(output.defined() ? std::optional(std::move(output)) : std::nullopt);
  }
  variable_list defined;
  std::ranges::copy_if(inputs, std::back_inserter(defined),
                       [](const at::Tensor& x) { return x.defined(); });
  const auto jvp = [](const variable_list&, const variable_list&) -> variable_list {
    TORCH_CHECK(false, "ferry: a reentrant checkpoint or a pipeline has no forward derivative");
  };
  const auto view_as_self = [](const at::Tensor& x) { return x.view_as(x); };
  using None = std::unordered_set<at::TensorImpl*>;
#if TORCH_VERSION_MINOR >= 14
  NodePointer attached;  // stays `node`, because no input is written
  return torch::autograd::_wrap_outputs(defined, None{}, None{}, raw, node, jvp, None{},
                                        view_as_self, /*pure_view=*/false, attached);
#else
  return torch::autograd::_wrap_outputs(defined, None{}, None{}, raw, node, jvp, None{},
                                        view_as_self, /*pure_view=*/false);
#endif
}

inline std::vector<at::Tensor> unwrapped(const Outputs& outputs) {
  std::vector<at::Tensor> result;
  for (const auto& output : outputs) result.push_back(output.value_or(at::Tensor()));
  return result;
}

}  // namespace ferry::real
