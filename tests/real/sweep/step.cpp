#include "tests/real/sweep/step.h"

#include <ATen/CPUGeneratorImpl.h>
#include <malloc.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace ferry::sweep {
namespace {

using c10::IValue;

bool floats(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

// What the call returns, and what it writes without returning it.
Tensors call(const Call& call, Arguments arguments) {
  torch::jit::Stack stack(std::move(arguments));
  const auto& schema = call.op.schema();
  std::vector<IValue> written;
  if (schema.returns().empty()) {
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      if (alias && alias->isWrite()) written.push_back(stack[i]);
    }
  }
  call.op.callBoxed(&stack);
  stack.insert(stack.end(), written.begin(), written.end());
  Tensors outputs = tensors_in(stack);
  for (const at::Tensor& output : outputs) {
    TORCH_CHECK(!output.is_nested(), "nested tensors cannot be compared");
  }
  return outputs;
}

// Ops that save what the call returned, and one that saves a function of it.
void go_on(Tensors& outputs) {
  for (at::Tensor& output : outputs) {
    if (floats(output) && output.layout() == at::kStrided)
      output = (output * output).sin() * output;
  }
}

Tensors segment(const Case& drawn, Place place, const Tensors& leaves) {
  Arguments arguments;
  std::size_t next = 0;
  for (const IValue& argument : drawn.call.arguments) {
    arguments.push_back(with_tensors(argument, [&](const at::Tensor&) {
      const std::size_t i = next++;
      return drawn.leaves[i].view(leaves[i].clone());
    }));
  }
  Tensors outputs = call(drawn.call, std::move(arguments));
  if (place == Place::kFollowed) go_on(outputs);
  return outputs;
}

Tensors requiring(const Tensors& tensors) {
  Tensors found;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) found.push_back(tensor);
  }
  return found;
}

// Not all ones, which hide what is multiplied by them.
Tensors seeds(const Tensors& of) {
  Tensors seeds;
  for (const at::Tensor& tensor : of) {
    const at::Tensor ramp = torch::arange(tensor.numel(), torch::kFloat64).remainder(7) / 4 + 0.5;
    const at::Tensor seed = ramp.reshape(tensor.sizes()).to(tensor.scalar_type());
    seeds.push_back(tensor.layout() == at::kStrided ? seed : seed.to_sparse(tensor.layout()));
  }
  return seeds;
}

Tensors gradients(const Tensors& of, const Tensors& leaves, bool keep, bool create_graph) {
  return torch::autograd::grad(of, leaves, seeds(of), keep, create_graph, /*allow_unused=*/true);
}

// As they are now: what is written later is not seen.
Tensors detached(const Tensors& tensors) {
  Tensors found;
  for (const at::Tensor& tensor : tensors) {
    found.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  }
  return found;
}

void differentiate(const Tensors& outputs, const Tensors& leaves, Backwards backwards,
                   Outcome& outcome) {
  const Tensors roots = requiring(outputs), wanted = requiring(leaves);
  const bool several = backwards == Backwards::kSeveral;
  outcome.parts.push_back(detached(outputs));
  outcome.differentiable = !roots.empty();
  if (roots.empty()) return;
  outcome.parts.push_back(detached(gradients(roots, wanted, several, false)));
  if (!several) return;
  const Tensors first = gradients(roots, wanted, true, true);
  outcome.parts.push_back(detached(first));
  const Tensors again = requiring(first);
  if (again.empty()) return;
  outcome.parts.push_back(detached(gradients(again, wanted, false, false)));
}

at::Tensor plain_bytes(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.layout() == at::kStrided ? tensor : tensor.to_dense();
  return dense.resolve_conj().resolve_neg().contiguous();
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.layout() != b.layout()) return false;
  const at::Tensor x = plain_bytes(a), y = plain_bytes(b);
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace

// An op may return memory that it did not write, or read some: new memory is full of another byte
// in every run, so that no two runs agree on it by luck.
void fill_new_memory() {
  static int byte = 0;
  byte = byte % 250 + 1;
  mallopt(M_PERTURB, byte);
}

Outcome run_step(const Case& drawn, Place place, const Way& way, Backwards backwards) {
  fill_new_memory();
  torch::manual_seed(7);
  Tensors leaves;
  for (const Leaf& leaf : drawn.leaves) {
    const bool requires_grad = leaf.requires_grad && floats(leaf.value);
    leaves.push_back(leaf.value.clone().set_requires_grad(requires_grad));
  }
  Outcome outcome;
  try {
    way([&] { return segment(drawn, place, leaves); },
        [&](const Tensors& outputs) { differentiate(outputs, leaves, backwards, outcome); });
  } catch (const c10::Error& error) {
    outcome.error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  outcome.generator = at::detail::getDefaultCPUGenerator().get_state();
  return outcome;
}

std::string difference(const Outcome& plain, const Outcome& other, Backwards backwards) {
  const std::size_t wanted = std::min(static_cast<std::size_t>(backwards), plain.parts.size());
  for (std::size_t part = 0; part < wanted; ++part) {
    if (part == other.parts.size()) {
      return std::string("raises in ") + kParts[part] + ": " + other.error;
    }
    const Tensors &ours = other.parts[part], &theirs = plain.parts[part];
    if (!std::ranges::equal(ours, theirs, same)) return kParts[part];
  }
  if (other.parts.size() > wanted) return std::string("does not raise in ") + kParts[wanted];
  if (wanted < static_cast<std::size_t>(backwards) && plain.error.empty() != other.error.empty()) {
    return "raises in " + std::string(kParts[wanted]) + ": " + other.error;
  }
  return same(plain.generator, other.generator) ? "" : "the generator";
}

}  // namespace ferry::sweep
