// One call of an operator below autograd, kept so that it can run again: ferry::replay and the
// spans of plans recompute with it (replays.h). It has what a replay needs: the arguments, dispatch
// keys, autocast state and grad mode (kernels may read it), and the state of the random generator
// if the op uses one. traits_of() and can_run_again() say which ops can run again; a capture asks
// too (real/capture/recorder.cpp).
//
// It holds none of the op's tensors: `run` gets them, in the order in which tensors_of() lists
// them.
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

// Facts about an operator.
struct OpTraits {
  bool is_seen = false;           // makes or writes tensors (not just a view or a number)
  bool can_run_again = false;     // except a batch norm that reads its statistics
  bool keeps_statistics = false;  // a batch norm: writes them in training, undeclared
  bool makes_blank = false;       // its results have undefined contents: at::empty
  bool overwrites = false;        // it overwrites all that it writes: copy_, fill_, bernoulli_
};
const OpTraits& traits_of(const c10::OperatorHandle& op);

// True if this call can run again with the same results. A batch norm in training mode can, on
// copies of its statistics. In eval mode it cannot, because a training may have changed what it
// reads.
bool can_run_again(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The defined tensors among the arguments of a call, in order.
struct OpTensor {
  at::Tensor tensor;
  bool written = false;
};
std::vector<OpTensor> tensors_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Returns the defined tensors among the results, which are on top of the stack.
std::vector<at::Tensor> results_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Returns the present autocast state. Calls share one object as long as the state does not change.
class AutocastNow {
 public:
  std::shared_ptr<const Ambient> get();

 private:
  std::vector<std::int64_t> key_;
  std::shared_ptr<const Ambient> ambient_;
};

class ReplayedOp {
 public:
  // Construct it before the op runs.
  ReplayedOp(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
             const torch::jit::Stack& stack, std::shared_ptr<const Ambient> ambient,
             bool grad_mode);

  // Runs the op on these tensors instead of its own. Afterwards the random generators are as
  // before.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& tensors) const;

 private:
  // An argument without its tensors.
  struct Argument {
    enum class Kind : std::uint8_t { kOther, kTensor, kList, kOptionals } kind = Kind::kOther;
    bool copied = false;        // kTensor: the op writes it, so it gets a copy
    c10::IValue value;          // kOther
    std::vector<bool> defined;  // whether each tensor of a list is defined
  };
  struct Drawn {
    std::optional<std::size_t> argument;  // the argument that is a generator
    at::Generator generator;
    at::Tensor state;  // its state before the op
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
