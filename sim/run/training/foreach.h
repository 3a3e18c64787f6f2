// Kernels over lists of tensors, as torch._foreach_* launches them: one that reads and writes them
// all.
//
// PyTorch cuts a long list into several launches; here it is one, for what counts is the memory's
// rate. The tensors are on the current stream's device.
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
  // Uninitialised; each as large as its like, and put down to its place.
  TensorList empty_like(const TensorList& like, MemoryKind kind);
  // Of so many bytes.
  Tensor empty(std::int64_t bytes, MemoryKind kind);
  Time busy_ns() const { return busy_ns_; }  // of all that was launched

 private:
  Machine& machine_;
  const KernelTimes& times_;
  std::uint64_t launches_ = 0;
  Time busy_ns_ = 0;
};

// Gives them back in reverse, as a C++ vector of tensors does not and PyTorch's lists do.
void drop(TensorList& list);

}  // namespace ferry::sim
