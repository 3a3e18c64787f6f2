// The traffic (kernels, bytes read, bytes written) of operators that write at indices: index_put,
// scatter, index_add and similar ones. op_costs.h uses it, because the sizes of the tensors alone
// do not give this traffic.
//
// Each reads the indices and the new values, and writes as many elements of its tensor. The form
// that returns a new tensor copies the old one first (scatter_reduce copies it twice). An operator
// that adds or reduces also reads the old elements. How often an index occurs is not known, so as
// many elements count as written as there are values.
//
// scatter, index_add, and index_put without accumulate write in one kernel. index_put with
// accumulate sorts the indices first (PyTorch 2.11, aten/src/ATen/native/cuda/Indexing.cu,
// index_put_with_sort_kernel). Before that it checks the bounds of each index, unless it is the
// gradient of an indexing.
#pragma once

#include <optional>

#include "formats/op_call.h"

namespace ferry {

// Returns all traffic of the call; empty if it is none of these operators.
std::optional<OpTraffic> put_traffic(const OpCall& call);

}  // namespace ferry
