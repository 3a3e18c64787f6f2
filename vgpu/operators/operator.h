// One of LibTorch's operators on the virtual GPU: what its schema says, and the boxed kernel that
// takes the place of its CUDA kernel. kernels.h explains how an operator runs. An Operator is read
// from the schema once, and then serves all calls, from any thread.
#pragma once

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vgpu/operators/ways.h"

namespace ferry::vgpu {

struct Operator {
  explicit Operator(const c10::OperatorHandle& handle);

  c10::OperatorHandle op;
  std::string name;   // "aten::mm.out"
  std::string label;  // "aten.mm"
  std::size_t arguments = 0;
  std::vector<bool> writes;                             // for each argument
  std::vector<bool> outs;                               // for each argument: may be resized
  std::vector<std::optional<std::size_t>> returned_as;  // for each result: the argument that it is
  bool makes_tensors = false;                           // has new results: tensors, a way's number
  bool by_data = false;                                 // shapes or results depend on values
  bool may_be_by_data = false;                          // the shapes do, for some arguments
  bool draws = false;
  bool overwrites = false;  // does not read what it writes in place
  bool has_meta = false;
  Way way = nullptr;

  bool can_compute() const;
};

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const c10::OperatorHandle& handle) : operator_(handle) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack);

 private:
  const Operator operator_;
};

// Queues the operator's CPU kernel on the current stream of the device that has its tensors.
void run_queued(const Operator& op, torch::jit::Stack* stack);

}  // namespace ferry::vgpu
