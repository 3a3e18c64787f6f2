// What the layers of a chain declare of skip tensors, and whether they do it.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <memory>
#include <set>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/skip/skippable.h"
#include "shared/skip/tracker.h"

namespace ferry::real {

// Of one layer and the modules in it, by its name in the chain. A pair within the layer is its own
// affair, and not in it.
struct DeclaredSkips {
  Skippable outside;
  std::set<SkipName> stashes;  // all
  std::set<SkipName> pops;
};
std::vector<DeclaredSkips> declared_skips(const torch::nn::SequentialImpl& layers);
std::vector<Skippable> outside(const std::vector<DeclaredSkips>& layers);

// Around the tracker in force while one layer runs: refuses what it did not declare.
class LayerSkips final : public SkipTracker<at::Tensor> {
 public:
  LayerSkips(std::shared_ptr<SkipTracker<at::Tensor>> around, const DeclaredSkips& declared)
      : around_(std::move(around)), stashes_(declared.stashes), pops_(declared.pops) {}
  void save(const SkipName& name, at::Tensor value) override;
  at::Tensor load(const SkipName& name) override;
  // After the layer. Throws SkipError where it did not do all.
  void finish() const;

 private:
  const std::shared_ptr<SkipTracker<at::Tensor>> around_;
  std::set<SkipName> stashes_;  // what it may do, and
  std::set<SkipName> pops_;
  std::set<SkipName> did_stash_;  // did
  std::set<SkipName> did_pop_;
};

}  // namespace ferry::real
