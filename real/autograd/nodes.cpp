// The member functions of TorchAutograd that only pipelines need.

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <string>
#include <utility>

#include "real/autograd/outputs.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {

namespace autograd = torch::autograd;

// It bypasses the dispatcher, so it makes no view and no op that a log or profile would see.
at::Tensor TorchAutograd::tensor(const Value& value) const {
  const c10::TensorImpl& impl = *value.unsafeGetTensorImpl();
  return Tensor(impl.shallow_copy_and_detach(impl.version_counter(),
                                             /*allow_tensor_metadata_change=*/false));
}

at::Tensor TorchAutograd::leaf(const Tensor& tensor, bool requires_grad) const {
  Value leaf = this->tensor(tensor);
  if (requires_grad) leaf.set_requires_grad(true);
  return leaf;
}

bool TorchAutograd::differentiable(const Value& value) const {
  return value.defined() &&
         (at::isFloatingType(value.scalar_type()) || at::isComplexType(value.scalar_type()));
}

at::Tensor TorchAutograd::phony(const Value& value) const {
  const c10::Device device = value.defined() ? value.device() : c10::Device(c10::kCPU);
  return at::empty({0}, at::TensorOptions().dtype(at::kFloat).device(device));
}

namespace {

class OrderNode final : public OwnNode {
 public:
  OrderNode(const std::vector<at::Tensor>& inputs, TorchAutograd::NodeBackward backward)
      : OwnNode(autograd::collect_next_edges(inputs)), backward_(std::move(backward)) {}

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    TORCH_CHECK(!c10::GradMode::is_enabled(),
                "ferry::Pipe: the backward of a pipeline has no graph (create_graph)");
    return backward_(std::move(gradients));
  }
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {
    refuse_compiled("ferry::Pipe");
  }
  std::string name() const override { return "ferry::Pipe"; }

 private:
  void release() override { backward_ = nullptr; }

  TorchAutograd::NodeBackward backward_;
};

}  // namespace

std::vector<at::Tensor> TorchAutograd::node(std::span<const Value> inputs,
                                            std::vector<Value> outputs,
                                            NodeBackward backward) const {
  const std::vector<Value> from(inputs.begin(), inputs.end());
  if (!grad_mode() ||
      std::ranges::none_of(from, [&](const Value& x) { return requires_grad(x); })) {
    return outputs;
  }
  const auto node = make_node<OrderNode>(from, std::move(backward));
  const Outputs wrapped = wrap_outputs(from, std::move(outputs), node);
  tell_of_new_node(node);
  return unwrapped(wrapped);
}

}  // namespace ferry::real
