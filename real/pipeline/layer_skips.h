// The skip tensors that the layers of a chain declare, and the check that they use what they
// declare.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <memory>
#include <set>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/skip/skippable.h"
#include "shared/skip/tracker.h"

namespace ferry::real {

// The declarations of one layer and of the modules inside it; the layer has its name in the chain.
// If a name is stashed and popped inside the layer, it is private to it and not in `outside`.
struct DeclaredSkips {
  Skippable outside;
  std::set<SkipName> stashes;  // all, including private ones
  std::set<SkipName> pops;
};
std::vector<DeclaredSkips> declared_skips(const torch::nn::SequentialImpl& layers);
std::vector<Skippable> outside(const std::vector<DeclaredSkips>& layers);

// Wraps the tracker in force while one layer runs. Undeclared stashes and pops throw SkipError.
class LayerSkips final : public SkipTracker<at::Tensor> {
 public:
  LayerSkips(std::shared_ptr<SkipTracker<at::Tensor>> around, const DeclaredSkips& declared)
      : around_(std::move(around)), stashes_(declared.stashes), pops_(declared.pops) {}
  void save(const SkipName& name, at::Tensor value) override;
  at::Tensor load(const SkipName& name) override;
  // Call it after the layer. Throws SkipError if the layer did not use all that it declared.
  void finish() const;

 private:
  const std::shared_ptr<SkipTracker<at::Tensor>> around_;
  std::set<SkipName> stashes_;  // allowed
  std::set<SkipName> pops_;
  std::set<SkipName> did_stash_;  // done
  std::set<SkipName> did_pop_;
};

}  // namespace ferry::real
