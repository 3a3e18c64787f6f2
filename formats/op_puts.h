// The traffic of operators that write at indices: index_put, scatter, index_add and their kin.
//
// Each reads indices and what is put there, and writes as much of its tensor; the form that returns
// a new tensor copies the old one first, scatter_reduce twice. What adds or reduces reads what was
// there, too. As many places are touched as values are put, for how often an index comes is not
// known.
//
// scatter and index_add add by atomics, in one kernel. index_put does not: it sorts (PyTorch 2.11,
// aten/src/ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel), and before that looks at each
// index's bounds, unless it is the gradient of an indexing.
#pragma once

#include <optional>

#include "formats/op_call.h"

namespace ferry {

// All of the call's, or nothing where it is none of these.
std::optional<OpTraffic> put_traffic(const OpCall& call);

}  // namespace ferry
