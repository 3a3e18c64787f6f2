// Skip tensors: tensors that a layer gives to a later layer, past the layers between them.
//
//   struct DownImpl : torch::nn::Module, ferry::SkipLayer {
//     DownImpl() : SkipLayer({"skip"}, {}) { ... }
//     torch::Tensor forward(torch::Tensor x) {
//       x = conv(x);
//       stash("skip", x);
//       return pool(x);
//     }
//   };
//   struct UpImpl : torch::nn::Module, ferry::SkipLayer {
//     UpImpl() : SkipLayer({}, {"skip"}) { ... }
//     torch::Tensor forward(torch::Tensor x) { return conv(torch::cat({up(x), pop("skip")}, 1)); }
//   };
//
// In a ferry::Pipe (ferry/pipe.h) a skip tensor is copied directly from the device that stashes it
// to the device that pops it. Outside a Pipe, and in ferry::checkpoint, stash and pop also work:
// the calling thread keeps the tensor until it is popped.
//
// An undefined tensor can be stashed, and is popped as one. A parameter can be stashed too: so two
// stages share a weight. A checkpoint that pops a tensor keeps it as long as it may be recomputed.
// A *reentrant* checkpoint must not pop a tensor that has a graph, because its own backward would
// run through that graph.
//
// Errors: SkipError if a name is popped but not stashed, or if a layer uses a name that it did not
// declare, and in a Pipe also if a layer does not use a name that it declared. Each thread, and
// each stage of a Pipe, has its own stashed tensors.
//
// The model is torchgpipe/skip (skippable.py, namespace.py), without its generators: there forward
// yields its stashes and pops.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "shared/skip/namespace.h"
#include "shared/skip/skippable.h"

namespace torch::nn {
class Sequential;
class Module;
}  // namespace torch::nn

namespace ferry {

// Gives `tensor` to the layer that pops this name. A second stash under the name replaces the
// first.
void stash(const std::string& name, torch::Tensor tensor,
           const Namespace& space = Namespace::common());
// Returns the stashed tensor, with its graph. Call it once for each stash.
torch::Tensor pop(const std::string& name, const Namespace& space = Namespace::common());

// A base for layers that stash or pop, besides torch::nn::Module. It declares their names.
class SkipLayer {
 public:
  virtual ~SkipLayer() = default;

  // Moves these names, or all names, of the layer into a namespace. So two layers of one class,
  // which use the same names, do not get each other's tensors.
  void isolate(const Namespace& space);
  void isolate(const Namespace& space, const std::vector<std::string>& names);

  std::vector<SkipName> stashes() const { return in_namespaces(stashes_); }
  std::vector<SkipName> pops() const { return in_namespaces(pops_); }

 protected:
  SkipLayer(std::vector<std::string> stashes, std::vector<std::string> pops);

  // For use in forward(). They use the namespace of the name.
  void stash(const std::string& name, torch::Tensor tensor) const;
  torch::Tensor pop(const std::string& name) const;

 private:
  SkipName in_namespace(const std::string& name) const;
  std::vector<SkipName> in_namespaces(const std::vector<std::string>& names) const;

  std::vector<std::string> stashes_;
  std::vector<std::string> pops_;
  std::map<std::string, Namespace> namespaces_;
};

// Throws SkipError, with a list of all faults, unless each name that a layer stashes is popped by
// exactly one later layer. A Pipe calls this.
void verify_skippables(const torch::nn::Sequential& layers);

}  // namespace ferry
