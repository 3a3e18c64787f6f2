// The member functions of TorchAutograd that recomputing needs besides those for offloading.

#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable_info.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "real/autograd/op_inputs.h"
#include "real/autograd/outputs.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {

namespace autograd = torch::autograd;

ThreadId TorchAutograd::thread() const {
  static std::atomic<std::uint64_t> next{0};
  thread_local const ThreadId id{next.fetch_add(1, std::memory_order_relaxed)};
  return id;
}

// The active logs of a thread, and the callback that writes to all of them.
struct OpLogs {
  std::vector<TorchAutograd::OpLog*> logs;
  at::CallbackHandle callback = 0;

  static OpLogs& here() {
    thread_local OpLogs logs;
    return logs;
  }
  static std::unique_ptr<at::ObserverContext> write(const at::RecordFunction& op) {
    const OpLogs& here = OpLogs::here();
    if (here.logs.empty()) return nullptr;  // a thread to which backward went on
    std::ostringstream text;
    text << op.name();
    const char* between = " ";
    const auto add = [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.is_nested()) return;
      text << between << tensor.sizes();
      between = ", ";
    };
    for (const c10::IValue& input : op_inputs(op)) {
      if (input.isTensor()) {
        add(input.toTensor());
      } else if (input.isTensorList()) {
        for (const at::Tensor& tensor : input.toTensorVector()) add(tensor);
      }
    }
    for (TorchAutograd::OpLog* const log : here.logs) log->names_.push_back(text.str());
    return nullptr;
  }
};

TorchAutograd::OpLog::OpLog(TorchAutograd) {
  OpLogs& here = OpLogs::here();
  here.logs.push_back(this);
  if (here.logs.size() > 1) return;
  here.callback = at::addThreadLocalCallback(at::RecordFunctionCallback(&OpLogs::write)
                                                 .needsInputs(true)
                                                 .scopes({at::RecordScope::FUNCTION}));
}

TorchAutograd::OpLog::~OpLog() {
  OpLogs& here = OpLogs::here();
  std::erase(here.logs, this);
  if (here.logs.empty()) at::removeCallback(here.callback);
}

at::Tensor TorchAutograd::detach(const Value& value) const {
  if (!value.defined()) return value;
  Value detached = value.detach();
  detached.set_requires_grad(value.requires_grad());
  return detached;
}

void TorchAutograd::backward(std::span<const Value> roots, std::span<const Value> gradients) const {
  autograd::backward({roots.begin(), roots.end()}, {gradients.begin(), gradients.end()});
}

bool TorchAutograd::checkpoint_valid() const {
  return autograd::Engine::get_default_engine().is_checkpoint_valid();
}

namespace {

class Region final : public OwnNode {
 public:
  Region(const std::vector<at::Tensor>& inputs, TorchAutograd::Backward backward,
         AbsentGradient absent)
      : OwnNode(autograd::collect_next_edges(inputs)),
        backward_(std::move(backward)),
        absent_(absent) {}

  // Call it after `outputs` became outputs of this node.
  void keep(const std::vector<at::Tensor>& inputs, const Outputs& outputs) {
    for (const auto& output : outputs) {
      outputs_.push_back(output ? autograd::VariableInfo(*output) : autograd::VariableInfo());
    }
    for (const at::Tensor& input : inputs) {
      const bool is_output = input.defined() && input.grad_fn().get() == this;
      inputs_.emplace_back(input, is_output);
    }
  }

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    std::vector<at::Tensor> inputs;
    {
      const std::lock_guard lock(mutex_);
      TORCH_CHECK(!released_, autograd::ERR_BACKWARD_TWICE);
      for (const autograd::SavedVariable& input : inputs_) {
        inputs.push_back(input.unpack(getptr()));
      }
    }
    at::OptionalDeviceGuard guard;
    for (std::size_t i = 0; i < gradients.size() && absent_ == AbsentGradient::kZeros; ++i) {
      if (!gradients[i].defined()) gradients[i] = outputs_[i].zeros(guard);
    }
    return backward_(std::move(inputs), std::move(gradients));
  }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {
    refuse_compiled("ferry::checkpoint with reentrant on");
  }
  std::string name() const override { return "ferry::checkpoint"; }

  void release_variables() override {
    std::vector<autograd::SavedVariable> released;
    const std::lock_guard lock(mutex_);
    released.swap(inputs_);
    released_ = true;
  }

 private:
  void release() override {
    release_variables();
    backward_ = nullptr;
  }

  TorchAutograd::Backward backward_;
  const AbsentGradient absent_;
  std::vector<autograd::SavedVariable> inputs_;
  std::vector<autograd::VariableInfo> outputs_;
  bool released_ = false;
};

}  // namespace

std::vector<at::Tensor> TorchAutograd::function(std::span<const Value> inputs,
                                                std::vector<Value> outputs, Backward backward,
                                                AbsentGradient absent) const {
  const std::vector<Value> from(inputs.begin(), inputs.end());
  MadeNode<Region> node;
  if (grad_mode() && std::ranges::any_of(from, [&](const Value& x) { return requires_grad(x); })) {
    node = make_node<Region>(from, std::move(backward), absent);
  }
  const Outputs wrapped = wrap_outputs(from, std::move(outputs), node);
  if (node) {
    node->keep(from, wrapped);
    tell_of_new_node(node);
  }
  return unwrapped(wrapped);
}

}  // namespace ferry::real
