// One operator on the virtual GPU: what its schema says, and the boxed kernel that takes the place
// of its CUDA kernel. kernels.h explains how an operator runs. An Operator is read from the schema
// once, and then serves all calls, from any thread. It must live until the process ends, because
// queued work refers to it. extensions.h has the operators of extensions.
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

// Says who computes an extension's operator, if it is not the operator's own CPU kernel, compiled.
struct Computing {
  std::optional<c10::OperatorHandle> stand_in;  // has the same schema, and a CPU kernel in Python
  bool in_python = false;                       // the operator's CPU kernel is in Python
};

struct Operator {
  explicit Operator(const c10::OperatorHandle& handle, Computing by = {});

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
  bool returns_view = false;  // has a result that lies in an argument's bytes, at another place
  Computing by;
  Way way = nullptr;

  bool can_compute() const;
  // Returns whether Python computes it. Queued work must not call Python.
  bool is_in_python() const { return by.in_python || by.stand_in; }
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
