// Skip tensors: tensors that one layer of a chain makes for a later one, past the layers between.
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
// In a ferry::Pipe (ferry/pipe.h) a skip tensor goes straight from the device that stashes it to
// the one that pops it. Without one, and in ferry::checkpoint, stash and pop work as they stand:
// then the calling thread keeps what was stashed until it is popped.
//
// An undefined tensor may be stashed; it is popped as one. A tensor may be a parameter: this is how
// two stages share a weight. A checkpoint that pops keeps what it popped for as long as it may run
// again; a *reentrant* one must not pop what has a graph, for its own backward would go through
// that.
//
// Errors: SkipError for a name that is popped but not stashed, for what a layer did not declare,
// and in a Pipe for what it declared and did not do. Threads: what is stashed is the calling
// thread's, or its stage's.
//
// Models torchgpipe/skip (skippable.py, namespace.py), without its generators: there forward yields
// its stashes and pops.
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

// Gives `tensor` to the layer that pops that name. Stashing a name again replaces it.
void stash(const std::string& name, torch::Tensor tensor,
           const Namespace& space = Namespace::common());
// Returns what was stashed, with its graph. Call it once for each stash.
torch::Tensor pop(const std::string& name, const Namespace& space = Namespace::common());

// A base of layers that stash or pop, beside torch::nn::Module: declares which names.
class SkipLayer {
 public:
  virtual ~SkipLayer() = default;

  // From now on these names, or all, are in that namespace, so that two layers of one class, which
  // use the same names, do not meet.
  void isolate(const Namespace& space);
  void isolate(const Namespace& space, const std::vector<std::string>& names);

  std::vector<SkipName> stashes() const { return in_namespaces(stashes_); }
  std::vector<SkipName> pops() const { return in_namespaces(pops_); }

 protected:
  SkipLayer(std::vector<std::string> stashes, std::vector<std::string> pops);

  // For use in forward(), in the namespace of that name.
  void stash(const std::string& name, torch::Tensor tensor) const;
  torch::Tensor pop(const std::string& name) const;

 private:
  SkipName in_namespace(const std::string& name) const;
  std::vector<SkipName> in_namespaces(const std::vector<std::string>& names) const;

  std::vector<std::string> stashes_;
  std::vector<std::string> pops_;
  std::map<std::string, Namespace> namespaces_;
};

// Throws SkipError, listing everything wrong, unless each name that a layer declares to stash is
// popped by exactly one later layer. A Pipe calls this.
void verify_skippables(const torch::nn::Sequential& layers);

}  // namespace ferry
