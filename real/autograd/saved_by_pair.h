// A pair of hooks as LibTorch wants it: one object for each saved tensor.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <optional>
#include <utility>

#include "real/autograd/late_writes.h"
#include "shared/seam/hooks.h"

namespace ferry::real {

// The pair survives a pop by its own pack; after it, what was packed is enough.
class SavedByPair final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedByPair(std::shared_ptr<Hooks<at::Tensor>> pair) : pair_(std::move(pair)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    auto pair = std::exchange(pair_, nullptr);
    LatePacks* const late = LatePacks::current();
    saved_ = late ? late->add(std::move(pair), tensor) : pair->pack(tensor);
  }
  at::Tensor call_unpack_hook() override {
    at::Tensor tensor = saved_->unpack();
    TORCH_CHECK_TYPE(tensor.defined(),
                     "Output of saved tensor unpack hook expected to be a Tensor but got an "
                     "undefined one");
    return tensor;
  }
  // Compiled autograd asks for Python's hooks, to call them from what it compiles. Ours are none of
  // Python's: as with a tensor that has no hooks it is to unpack each one when it reads the graph.
  // Gradients are the same; but everything that was saved is back before backward begins.
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  std::shared_ptr<Hooks<at::Tensor>> pair_;
  std::unique_ptr<Saved<at::Tensor>> saved_;
};

}  // namespace ferry::real
