// The random generator that a thread's ops draw from on the CPU.
//
// LibTorch has one for the process: where several threads draw at once they draw in no order, and
// none can have its numbers again for a recompute. A thread with a generator of its own draws from
// that: its ops are seen below autograd (below_autograd.h), and one that may be given a generator
// is given it. One that may not, such as aten::rand, finds its state in the default generator while
// it runs; such ops of several threads take turns. Ops that draw elsewhere than in LibTorch's
// dispatcher (a kernel of somebody's own that asks for the default generator) are not seen.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

// Of the calling thread: the default one, where it has none of its own.
at::Generator cpu_generator();
bool has_own_cpu_generator();

// Where an op draws that draws.
c10::Device drawing_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// While it lives, the calling thread and backwards begun on it draw from `generator`.
class OwnCpuGenerator {
 public:
  explicit OwnCpuGenerator(at::Generator generator);
  OwnCpuGenerator(const OwnCpuGenerator&) = delete;
  OwnCpuGenerator& operator=(const OwnCpuGenerator&) = delete;
  ~OwnCpuGenerator() = default;

  bool drawn() const;

 private:
  class Drawing;
  explicit OwnCpuGenerator(std::shared_ptr<Drawing> drawing);

  std::shared_ptr<Drawing> drawing_;
  CheckpointScope ops_;
  c10::DebugInfoGuard slot_;
};

}  // namespace ferry::real
