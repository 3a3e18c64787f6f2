// LibTorch's autograd as the core's Autograd (shared/autograd.h).
//
// The hook stack and the graph task travel in slots of LibTorch's (slots.h). A node is known by a
// number that a thread draws when it meets a node that it has not just met: an address may be
// reused within a task, and a sequence number is per thread. (After a nested backward the node
// around it is met anew: the core then counts its uses as those of two nodes that end together.)
// after_node is a post hook that the node keeps, empty, once it has run: hooks that are added while
// a node runs fire at its end.
//
// Limits: where two threads run the same node at once (a retained graph, two backwards), LibTorch's
// list of post hooks is not safe against after_node, which the core uses with
// ReloadPool::kCopyStream alone. A program that loads libtorch_python has another engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <functional>
#include <memory>

#include "shared/autograd.h"

namespace ferry::real {

class TorchAutograd {
 public:
  using Tensor = at::Tensor;

  GraphTaskId graph_task() const;
  NodeId node() const;
  void after_node(std::function<void()> callback) const;
  void after_task(std::function<void()> callback) const;

  HookStack<Tensor> hooks() const;

  class HooksScope {
   public:
    HooksScope(TorchAutograd autograd, HookStack<Tensor> hooks);

   private:
    c10::DebugInfoGuard guard_;
  };
};

static_assert(Autograd<TorchAutograd>);

// The pair that sees what the calling thread saves now; none where no pair applies.
std::shared_ptr<Hooks<at::Tensor>> innermost_pair();

}  // namespace ferry::real
