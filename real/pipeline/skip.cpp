#include "ferry/skip.h"

#include <algorithm>
#include <string>
#include <utility>

#include "real/pipeline/layer_skips.h"
#include "real/tensors/torch_error.h"

namespace ferry {

using real::TorchAutograd;

void stash(const std::string& name, torch::Tensor tensor, const Namespace& space) {
  current_skip_tracker(TorchAutograd())->save(SkipName(name, space), std::move(tensor));
}

torch::Tensor pop(const std::string& name, const Namespace& space) {
  return current_skip_tracker(TorchAutograd())->load(SkipName(name, space));
}

namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

SkipError not_declared(const std::string& name, const char* as) {
  return SkipError(quoted(name) + " has not been declared as " + as);
}

}  // namespace

SkipLayer::SkipLayer(std::vector<std::string> stashes, std::vector<std::string> pops)
    : stashes_(std::move(stashes)), pops_(std::move(pops)) {}

void SkipLayer::isolate(const Namespace& space) {
  isolate(space, stashes_);
  isolate(space, pops_);
}

void SkipLayer::isolate(const Namespace& space, const std::vector<std::string>& names) {
  for (const std::string& name : names) namespaces_.insert_or_assign(name, space);
}

void SkipLayer::stash(const std::string& name, torch::Tensor tensor) const {
  if (std::ranges::find(stashes_, name) == stashes_.end())
    throw real::torch_error(not_declared(name, "stashable"));
  ferry::stash(name, std::move(tensor), in_namespace(name).in);
}

torch::Tensor SkipLayer::pop(const std::string& name) const {
  if (std::ranges::find(pops_, name) == pops_.end())
    throw real::torch_error(not_declared(name, "poppable"));
  return ferry::pop(name, in_namespace(name).in);
}

SkipName SkipLayer::in_namespace(const std::string& name) const {
  const auto found = namespaces_.find(name);
  return {name, found == namespaces_.end() ? Namespace::common() : found->second};
}

std::vector<SkipName> SkipLayer::in_namespaces(const std::vector<std::string>& names) const {
  std::vector<SkipName> result;
  for (const std::string& name : names) result.push_back(in_namespace(name));
  return result;
}

void verify_skippables(const torch::nn::Sequential& layers) {
  real::with_torch_errors<SkipError>(
      [&] { verify_skippables(real::outside(real::declared_skips(*layers))); });
}

namespace real {

std::vector<DeclaredSkips> declared_skips(const torch::nn::SequentialImpl& layers) {
  std::vector<DeclaredSkips> result;
  const auto names = layers.named_children().keys();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    DeclaredSkips& layer = result.emplace_back();
    layer.outside.layer = names[i];
    std::vector<SkipName> stashes;
    std::vector<SkipName> pops;
    std::set<SkipName> inside;
    for (const auto& module : layers.ptr(i)->modules()) {
      const auto* const skips = dynamic_cast<const SkipLayer*>(module.get());
      if (!skips) continue;
      for (const SkipName& name : skips->pops()) {
        if (layer.stashes.contains(name)) inside.insert(name);
        pops.push_back(name);
      }
      for (const SkipName& name : skips->stashes()) {
        layer.stashes.insert(name);
        stashes.push_back(name);
      }
    }
    layer.pops = {pops.begin(), pops.end()};
    const auto keep = [&](const std::vector<SkipName>& all, std::vector<SkipName>& outside) {
      std::ranges::copy_if(all, std::back_inserter(outside),
                           [&](const SkipName& name) { return !inside.contains(name); });
    };
    keep(stashes, layer.outside.stashes);
    keep(pops, layer.outside.pops);
  }
  return result;
}

std::vector<Skippable> outside(const std::vector<DeclaredSkips>& layers) {
  std::vector<Skippable> result;
  for (const DeclaredSkips& layer : layers) result.push_back(layer.outside);
  return result;
}

void LayerSkips::save(const SkipName& name, at::Tensor value) {
  if (!stashes_.contains(name)) throw torch_error(not_declared(name.name, "stashable"));
  did_stash_.insert(name);
  around_->save(name, std::move(value));
}

at::Tensor LayerSkips::load(const SkipName& name) {
  if (!pops_.contains(name)) throw torch_error(not_declared(name.name, "poppable"));
  did_pop_.insert(name);
  return around_->load(name);
}

void LayerSkips::finish() const {
  const auto require = [](const std::set<SkipName>& declared, const std::set<SkipName>& did,
                          const char* what) {
    std::string missing;
    for (const SkipName& name : declared) {
      if (!did.contains(name)) missing += (missing.empty() ? "" : ", ") + quoted(name.name);
    }
    if (!missing.empty())
      throw torch_error(SkipError(missing + " must be " + what + " but have not"));
  };
  require(stashes_, did_stash_, "stashed");
  require(pops_, did_pop_, "popped");
}

}  // namespace real
}  // namespace ferry
