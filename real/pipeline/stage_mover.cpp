#include "real/pipeline/stage_mover.h"

#include <c10/core/GradMode.h>

#include <utility>

namespace ferry::real {

class StageMover::Latest final : public Hooks<at::Tensor> {
 public:
  explicit Latest(std::shared_ptr<StageMover> mover) : mover_(std::move(mover)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    return mover_->latest_->pack(tensor);
  }

 private:
  const std::shared_ptr<StageMover> mover_;
};

PipeLayers::Function StageMover::stage(PipeLayers::Function function, StagePolicy policy) {
  if (!offloads(policy)) return function;
  return [self = shared_from_this(), function = std::move(function),
          policy](PipeLayers::Tensors values) {
    // A recompute uses its saved tensors at once, so they stay. Only the inputs of such a stage are
    // offloaded. They are saved after its first run.
    const bool again = runs_again(policy) && c10::GradMode::is_enabled();
    if (again) return function(std::move(values));
    const OffloadGuard guard(self->offload_);
    self->latest_ = TorchAutograd().hooks().top->pair;
    return function(std::move(values));
  };
}

std::shared_ptr<Hooks<at::Tensor>> StageMover::hooks() {
  return std::make_shared<Latest>(shared_from_this());
}

}  // namespace ferry::real
