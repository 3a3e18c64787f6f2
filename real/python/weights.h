// Frozen weights on the host, for Python (shared/state/weights.h).
//
// A weight is a storage with the parameters that lie in it. While a module is in its forward the
// parameters have the storage that was brought; at other times they keep their shapes and have no
// bytes, and an operator that reads them raises an error that says so.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <utility>

namespace ferry::real::python {

void add_weights(py::module_& module);

// True if the calling thread is in the forward of a module whose weights are on the host.
bool holds_weights();

// What autograd holds for a tensor that is saved there: a reference if the tensor lies in a weight,
// else what the hooks in force make of it.
class SavedBesideWeights final : public torch::autograd::SavedVariableHooks {
 public:
  using Hooks = std::unique_ptr<torch::autograd::SavedVariableHooks>;
  explicit SavedBesideWeights(Hooks in_force) : hooks_(std::move(in_force)) {}

  void call_pack_hook(const at::Tensor& tensor) override;
  at::Tensor call_unpack_hook() override { return hooks_->call_unpack_hook(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return hooks_ ? hooks_->retrieve_unpack_hook_data() : std::nullopt;
  }

 private:
  Hooks hooks_;  // null: none are in force, and nothing is packed yet
};

}  // namespace ferry::real::python
