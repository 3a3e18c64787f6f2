// One call of an operator, below autograd, with everything needed to run it again: its arguments,
// its kernel's dispatch keys, autocast, grad mode (kernels may ask for it), and where it draws
// random numbers the generator's state.
//
// It holds no tensor: those are handed over in the order in which `tensors` lists them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "real/autograd/ambient.h"

namespace ferry::real {

// What is known of an operator.
struct OpTraits {
  bool is_seen = false;           // it makes or writes tensors (no view, and no mere number)
  bool can_run_again = false;     // but for a batch norm that reads its statistics: see below
  bool keeps_statistics = false;  // a batch norm: in training it writes them, and does not say so
  bool makes_blank = false;       // undefined contents: at::empty
  bool overwrites = false;        // all that it writes: copy_, fill_, bernoulli_
};
const OpTraits& traits_of(const c10::OperatorHandle& op);

// True if this call of it can run again and make the same. In training a batch norm can, on copies
// of the statistics; what it reads in evaluation, a training may have written since.
bool can_run_again(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The tensors of a call's arguments, in order, where they are defined.
struct OpTensor {
  at::Tensor tensor;
  bool written = false;
};
std::vector<OpTensor> tensors_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The defined tensors of its results, which are the last of the stack.
std::vector<at::Tensor> results_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Autocast as it is now, once for all calls that find it unchanged.
class AutocastNow {
 public:
  std::shared_ptr<const Ambient> get();

 private:
  std::vector<std::int64_t> key_;
  std::shared_ptr<const Ambient> ambient_;
};

class ReplayedOp {
 public:
  // Before the op runs.
  ReplayedOp(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
             const torch::jit::Stack& stack, std::shared_ptr<const Ambient> ambient,
             bool grad_mode);

  // Runs the op on these in place of its tensors; the random generators are then as before.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& tensors) const;

 private:
  // An argument without its tensors.
  struct Argument {
    enum class Kind : std::uint8_t { kOther, kTensor, kList, kOptionals } kind = Kind::kOther;
    bool copied = false;        // kTensor: the op writes it, and is given a copy
    c10::IValue value;          // kOther
    std::vector<bool> defined;  // the tensors of a list
  };
  struct Drawn {
    std::optional<std::size_t> argument;  // that takes a generator
    at::Generator generator;
    at::Tensor state;  // before the op
  };

  static Argument apart(const c10::IValue& value);
  static std::optional<Drawn> drawn(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  torch::jit::Stack stack(const std::vector<at::Tensor>& tensors) const;
  void run_with_numbers(torch::jit::Stack* stack) const;

  const c10::OperatorHandle op_;
  const c10::DispatchKeySet keys_;
  std::vector<Argument> arguments_;
  const std::shared_ptr<const Ambient> ambient_;
  const bool grad_mode_;
  const std::optional<Drawn> drawn_;
};

}  // namespace ferry::real
