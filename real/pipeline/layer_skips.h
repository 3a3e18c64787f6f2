// The skip tensors that layers of a chain declare, and the check that they keep to it.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <memory>
#include <set>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/skip/skippable.h"
#include "shared/skip/tracker.h"

namespace ferry::real {

// Declarations of one layer and the modules in it, by its name in the chain. A pair within the
// layer is private to it, and left out.
struct DeclaredSkips {
  Skippable outside;
  std::set<SkipName> stashes;  // all of them
  std::set<SkipName> pops;
};
std::vector<DeclaredSkips> declared_skips(const torch::nn::SequentialImpl& layers);
std::vector<Skippable> outside(const std::vector<DeclaredSkips>& layers);

// Wraps the tracker in force while one layer runs: refuses undeclared stashes and pops.
class LayerSkips final : public SkipTracker<at::Tensor> {
 public:
  LayerSkips(std::shared_ptr<SkipTracker<at::Tensor>> around, const DeclaredSkips& declared)
      : around_(std::move(around)), stashes_(declared.stashes), pops_(declared.pops) {}
  void save(const SkipName& name, at::Tensor value) override;
  at::Tensor load(const SkipName& name) override;
  // Call after the layer. Throws SkipError if it did not do all that it declared.
  void finish() const;

 private:
  const std::shared_ptr<SkipTracker<at::Tensor>> around_;
  std::set<SkipName> stashes_;  // allowed, and
  std::set<SkipName> pops_;
  std::set<SkipName> did_stash_;  // done
  std::set<SkipName> did_pop_;
};

}  // namespace ferry::real
