// One operator of an extension, and who computes its calls (extensions.h says in which order).
//
// What computes it may change while the program runs: a fake implementation or a CPU kernel is
// registered, or a stand-in is given. Each call looks whether that happened. An Extension and the
// Operators that it made live until the process ends, because queued work refers to them. Any
// thread may call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "vgpu/operators/operator.h"

namespace ferry::vgpu {

class Extension {
 public:
  explicit Extension(const c10::OperatorHandle& handle);

  // The CUDA kernel that the operator has now is its own from now on.
  void keep_own_kernel();
  void set_in_python();
  void set_stand_in(const c10::OperatorHandle& by);

  // Computes in place of the operator's CUDA kernel.
  void call(c10::DispatchKeySet keys, torch::jit::Stack* stack);

  const std::string& name() const { return name_; }
  std::int64_t calls_by_stand_in() const;
  std::int64_t calls_without_cuda_kernel() const;

 private:
  const Operator& current();
  bool own_computes(c10::DispatchKeySet keys, torch::jit::Stack* stack);
  std::string attempt(c10::DispatchKeySet keys, torch::jit::Stack* stack) const;
  [[noreturn]] void refuse(const Operator& op) const;

  const c10::OperatorHandle handle_;
  const std::string name_;
  const std::size_t arguments_;
  mutable std::mutex mutex_;
  std::deque<Operator> operators_;  // the last one is in force
  Computing by_;
  std::optional<c10::SafeKernelFunction> own_;
  std::string refused_;  // the compiled kernel that the own kernel launches
  std::int64_t by_stand_in_ = 0;
  std::int64_t without_cuda_kernel_ = 0;
};

}  // namespace ferry::vgpu
