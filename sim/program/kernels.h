// The kernels that a tape launches on the machine: one for each op, with the bytes that it reads
// and writes; those that fill a new tensor; and the copy that moves a global. Results get storages
// from the current stream's pool.
//
// A kernel's tag says what it computes. It depends on the ambient state. A random op's tag also
// depends on the generator, which the op advances.
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
#include "sim/program/kernel_memory.h"
#include "sim/program/prepared.h"

namespace ferry::sim {

// Tells which thread launches now.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual LaunchThread launch_thread() const = 0;
};

class Kernels {
 public:
  // The arguments must outlive this object. `prepared` is of the program. `memory`: null: kernels
  // allocate none.
  Kernels(const Program& program, const Prepared& prepared, Machine& machine,
          const KernelTimes& times, const Launcher& launcher, const KernelMemory* memory)
      : program_(program),
        prepared_(prepared),
        machine_(machine),
        times_(times),
        launcher_(launcher),
        memory_(memory) {}
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Runs the op, statement number `index` of the frame's code. Returns the tag of what it computed.
  std::uint64_t run_op(CodeFrame& frame, std::size_t index, const Op& op);
  // Recomputes the op on these inputs (null: absent) with that tag, and returns its outputs.
  std::vector<Tensor> run_again(CodeId code, std::size_t index, const Op& op, std::uint64_t tag,
                                const std::vector<Tensor>& inputs);
  void run_view(CodeFrame& frame, const View& view);
  // Makes a tensor of this layout, alone on a new storage of its size.
  Tensor filled(std::string_view op, TensorLayout layout, StreamId stream);
  // Gives the tensor another storage with the same contents.
  void move(const Tensor& tensor);
  // The time to read and write so many bytes.
  KernelTime memory_time(std::int64_t bytes) const;

  AmbientState ambient;
  Workspaces workspaces;
  std::vector<std::string>* op_log = nullptr;  // where to append the names of ops; null: nowhere

 private:
  template <class Output>
  void make_outputs(CodeId code, std::size_t index, const Op& op, const Output& output);
  Tensor make_output(const Op& op, std::size_t number);
  // `input(i)` and `output(i)` are the op's tensors by number.
  template <class Input, class Output>
  void launch(CodeId code, std::size_t index, const Op& op, std::uint64_t tag, const Input& input,
              const Output& output);
  // Makes the workspaces that the op needs, and takes its temporaries.
  template <class Input, class Output>
  std::vector<Storage> take_memory(const Op& op, const Input& input, const Output& output);
  void log_op(const Op& op);

  const Program& program_;
  const Prepared& prepared_;
  Machine& machine_;
  const KernelTimes& times_;
  const Launcher& launcher_;
  const KernelMemory* memory_;
  std::vector<Range> reads_;  // reused scratch space
  std::vector<Range> writes_;
};

}  // namespace ferry::sim
