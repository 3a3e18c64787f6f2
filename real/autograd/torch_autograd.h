// LibTorch's autograd as the core's Autograd (shared/seam/autograd.h).
//
// The hook stack and the graph task travel in slots of LibTorch (hooks_slot.h, slots.h). A thread
// gives a node a new number, unless it is the node that the thread met last. An address would not
// identify the node, because it may be reused within a task, nor would a sequence number, because
// each thread has its own. (After a nested backward the outer node gets a new number. The core then
// sees two nodes that end together.) after_node uses a post hook, which stays on the node, empty,
// after it has run. A hook that is added while a node runs is called at the end of the node.
//
// For RecomputingAutograd, a saved value is a SavedVariable, as in LibTorch's nodes. The reentrant
// variant has a node class of its own in recomputing.cpp: a CppNode would hold its lock while its
// backward runs another backward. nodes.cpp implements PipelineAutograd.
//
// Limits: if two threads run the same node at once (a retained graph, two backwards), LibTorch's
// list of post hooks is not safe with after_node. The core uses after_node only with
// ReloadPool::kCopyStream.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "real/autograd/ambient.h"
#include "real/autograd/hooks_slot.h"
#include "real/tensors/torch_error.h"
#include "shared/seam/autograd.h"

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
    HooksScope(TorchAutograd, HookStack<Tensor> hooks) : scope_(std::move(hooks)) {}

   private:
    HooksSlotScope scope_;
  };

  // For the RecomputingAutograd concept.

  using Value = at::Tensor;
  using Ambient = real::Ambient;

  class SavedValue {
   public:
    // Throws what SavedVariable throws (c10::Error for an inference tensor), and what hooks throw.
    explicit SavedValue(const Value& value) : variable_(value, /*is_output=*/false) {}
    Value unpack() const { return variable_.unpack(); }

   private:
    torch::autograd::SavedVariable variable_;
  };
  SavedValue save(const Value& value) const { return SavedValue(value); }

  ThreadId thread() const;

  bool grad_mode() const { return c10::GradMode::is_enabled(); }
  class GradModeScope {
   public:
    GradModeScope(TorchAutograd, bool enabled) : mode_(enabled) {}

   private:
    c10::AutoGradMode mode_;
  };

  Ambient ambient(std::span<const Value> values, bool random) const {
    return Ambient(values, random);
  }
  void check(const Ambient& ambient) const { ambient.check(); }
  class AmbientScope {
   public:
    AmbientScope(TorchAutograd, const Ambient& ambient) : scope_(ambient) {}

   private:
    real::Ambient::Scope scope_;
  };

  // Logs ops with the shapes of their tensors: "aten::mm [2, 3], [3, 4]". If logs nest, the outer
  // one has the ops of the inner one too.
  class OpLog {
   public:
    explicit OpLog(TorchAutograd);
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog();
    std::vector<std::string> names() const { return names_; }

   private:
    friend struct OpLogs;
    std::vector<std::string> names_;
  };

  bool requires_grad(const Value& value) const { return value.defined() && value.requires_grad(); }
  Value detach(const Value& value) const;
  void backward(std::span<const Value> roots, std::span<const Value> gradients) const;
  Value gradient(const Value& leaf) const { return leaf.defined() ? leaf.grad() : Value(); }
  bool checkpoint_valid() const;
  using Backward =
      std::function<std::vector<Value>(std::vector<Value> inputs, std::vector<Value> gradients)>;
  // As in any custom function of PyTorch, an output that is an input becomes a view of it, and an
  // output that is a view of an input must not be written in place.
  std::vector<Value> function(std::span<const Value> inputs, std::vector<Value> outputs,
                              Backward backward, AbsentGradient absent) const;

  // For the PipelineAutograd concept.

  bool exists(const Value& value) const { return value.defined(); }
  // Returns an alias, which shares the bytes and the version counter.
  Tensor tensor(const Value& value) const;
  Value leaf(const Tensor& tensor, bool requires_grad) const;
  bool differentiable(const Value& value) const;
  Value phony(const Value& value) const;
  using NodeBackward = std::function<std::vector<Value>(std::vector<Value> gradients)>;
  // LibTorch runs the node on the stream that is current on the device of its first output when the
  // node is made. A backward with create_graph throws: tensors that cross devices in it have no
  // graph.
  std::vector<Value> node(std::span<const Value> inputs, std::vector<Value> outputs,
                          NodeBackward backward) const;
};

static_assert(PipelineAutograd<TorchAutograd>);

}  // namespace ferry::real
