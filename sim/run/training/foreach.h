// Kernels over lists of tensors, like those of torch._foreach_*: one kernel reads and writes all of
// them. The optimizer's step and the GradScaler launch their kernels with it.
//
// PyTorch cuts a long list into several launches. Here it is one, because the memory's rate decides
// the time. The tensors are on the current stream's device.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/gpu/machine.h"
#include "sim/program/prepared.h"

namespace ferry::sim {

using TensorList = std::vector<Tensor>;

class Foreach {
 public:
  // Both must outlive it.
  Foreach(Machine& machine, const KernelTimes& times) : machine_(machine), times_(times) {}

  void launch(std::string_view name, std::initializer_list<const TensorList*> reads,
              std::initializer_list<const TensorList*> writes);
  // Makes uninitialised tensors, as large as those in `like` and attributed to the same places.
  TensorList empty_like(const TensorList& like, MemoryKind kind);
  // Makes one uninitialised tensor of so many bytes.
  Tensor empty(std::int64_t bytes, MemoryKind kind);
  Time busy_ns() const { return busy_ns_; }  // of all launches

 private:
  Machine& machine_;
  const KernelTimes& times_;
  std::uint64_t launches_ = 0;
  Time busy_ns_ = 0;
};

// Frees them in reverse order, as PyTorch's lists do, and as a C++ vector of tensors does not.
void drop(TensorList& list);

}  // namespace ferry::sim
