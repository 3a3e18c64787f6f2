// The random generator that the ops of a thread use on the CPU.
//
// LibTorch has one for the process. If several threads use it at once, the order of their numbers
// is undefined, and a recompute cannot repeat them. So a thread may have a generator of its own.
// Its ops are then intercepted below autograd (below_autograd.h). An op that can take a generator,
// and was given none, gets it. An op without such an argument, such as aten::rand, finds the state
// of that generator in the default generator while it runs; such ops on several threads run one
// after the other. Code outside LibTorch's dispatcher, such as a custom kernel that uses the
// default generator, is not seen.
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

// Returns the generator of the calling thread: its own, or the default one.
at::Generator cpu_generator();
bool has_own_cpu_generator();

// How an op uses random numbers.
struct Draw {
  bool draws = false;
  std::optional<std::size_t> argument;  // the position of its generator argument, if it has one
};
const Draw& draw_of(const c10::OperatorHandle& op);

// Returns the device on which an op that uses random numbers takes them.
c10::Device drawing_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// While it lives, the calling thread, and backwards that begin on it, use `generator`.
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

// While it lives, the process's default generator has the state of `own`. At its end `own` gets the
// advanced state and the default generator its old state. A second object on another thread waits
// until the first one is gone.
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
