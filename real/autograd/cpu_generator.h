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

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

// Of the calling thread: the default one, where it has none of its own.
at::Generator cpu_generator();
bool has_own_cpu_generator();

// What an op does with random numbers.
struct Draw {
  bool draws = false;
  std::optional<std::size_t> argument;  // the generator that it may be given
};
const Draw& draw_of(const c10::OperatorHandle& op);

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

// While it lives, the process's default generator stands where `own` does, which goes on with it;
// then as before. Those of several threads take turns.
class LentCpuGenerator {
 public:
  explicit LentCpuGenerator(at::Generator own);
  LentCpuGenerator(const LentCpuGenerator&) = delete;
  LentCpuGenerator& operator=(const LentCpuGenerator&) = delete;
  ~LentCpuGenerator();

 private:
  const std::lock_guard<std::mutex> turn_;
  at::Generator own_;
  at::Generator default_;
  const at::Tensor before_;
};

}  // namespace ferry::real
