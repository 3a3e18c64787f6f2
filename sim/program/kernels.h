// What a tape launches on the machine: the kernel of each op, with the bytes that it reads and
// writes, what fills a new tensor, and the copy that moves a global. What kernels make has a
// storage from the current stream's pool.
//
// A kernel's tag says what it computes. It depends on the ambient state, and a random op's on the
// generator, which it moves on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/program/autograd.h"
#include "sim/program/code_frame.h"
#include "sim/program/prepared.h"

namespace ferry::sim {

class Kernels {
 public:
  // All outlive it; `prepared`: of the program.
  Kernels(const Program& program, const Prepared& prepared, Machine& machine,
          const KernelTimes& times)
      : program_(program), prepared_(prepared), machine_(machine), times_(times) {}
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // The op is the frame's statement with that index.
  void run_op(CodeFrame& frame, std::size_t index, const Op& op);
  void run_view(CodeFrame& frame, const View& view);
  // A tensor of this layout, alone on a storage of its size.
  Tensor filled(std::string_view op, TensorLayout layout, StreamId stream);
  // Gives the tensor another storage, of the same contents.
  void move(const Tensor& tensor);
  // How long it takes to read and write so many bytes.
  Time memory_ns(std::int64_t bytes) const;

  AmbientState ambient;
  std::vector<std::string>* op_log = nullptr;  // where the names of the ops go; none: nowhere

 private:
  void log_op(const Op& op);

  const Program& program_;
  const Prepared& prepared_;
  Machine& machine_;
  const KernelTimes& times_;
  std::vector<Range> reads_;  // scratch
  std::vector<Range> writes_;
};

}  // namespace ferry::sim
