// Watches one step and fills a Trace.
//
//   ops           a boxed fallback on a dispatch key that nothing uses (DispatchKey::Fake), just
//                 below autograd, included for the thread while a scope lives
//   saved tensors a pair of hooks whose pack keeps a copy of the storage and drops the original, so
//                 that storages die when they would if everything moved away
//   the graph     RecordFunction: behind the results of each op
//   segments      what checkpoints make around each call
//   backward      a hook before and one after each node of it
//
// It changes nothing of what the step computes: no node is made, no gradient function of a view is
// asked for (that would make a node), no tensor is kept.
//
// Copies are shared by the saves of one storage in one version, and what is unpacked shares them,
// as it would share the original. Parameters, buffers and inputs live on anyway: they are saved as
// they are. The entry points may be called on an engine's thread; one runs at a time.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "real/autograd/node_pointer.h"
#include "real/capture/op_clock.h"
#include "real/capture/storages.h"
#include "real/capture/trace.h"
#include "real/tensors/torch_tensors.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/hooks.h"

namespace ferry::real::capture {

struct GivenTensor {
  GlobalKind kind = GlobalKind::kInput;
  std::string name;
  at::Tensor tensor;
};

class Recorder : public std::enable_shared_from_this<Recorder> {
 public:
  // Records the ops' times if `times` says so.
  Recorder(const std::vector<GivenTensor>& given, bool times);

  // While it lives, the calling thread's step is recorded. One at a time in a process.
  class Scope;

  // Ends the recording. Throws CaptureError for anything that could not be recorded and could not
  // throw at once.
  Trace finish();

  class Pair;

 private:
  class Packed;
  class Entering;
  class Leaving;
  struct Observer;
  // A storage in one version: (storage, version counter, version).
  using CopyKey = std::tuple<StorageNumber, std::uint64_t, std::uint64_t>;
  static constexpr int kNoTask = -1;  // LibTorch's number for no task

  static void run_op(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
  std::optional<OpEvent> before_op(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  void after_op(OpEvent event, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor);
  at::Tensor unpack(const Packed& packed);
  void dropped(PackNumber pack);

  // A call of ferry::checkpoint, which runs without recompute while it is recorded; it ends with
  // the returned scope.
  CheckpointScope segment(const std::vector<at::Tensor>& arguments, bool reentrant);
  void segment_event(const std::string& name, bool enter, const std::vector<at::Tensor>& arguments);

  // The graph, and the parts that backward runs: recorder_graph.cpp.
  void results(const std::vector<c10::IValue>& outputs);
  void running(const NodePointer& node);
  void entering(const torch::autograd::Node& node, const torch::autograd::variable_list& gradients);
  void leaving(const torch::autograd::Node& node, const torch::autograd::variable_list& results);
  std::optional<Ref> seen(const at::Tensor& gradient, const torch::autograd::Node& node);
  void begin_backward(std::vector<Output> roots, const torch::autograd::variable_list& gradients);
  void forget_maker(const at::Tensor& tensor);
  void note(torch::autograd::Node* function);
  void take_saves(NodeNumber wrapper);
  Edge edge_of(const torch::autograd::Edge& edge);
  NodeNumber number_of(const torch::autograd::Node& node) const;
  NodeNumber made() const;
  static std::string short_name(const torch::autograd::Node& node);  // name without its namespace

  // The list that events go to at present; null: none.
  std::vector<Event>* sink();
  bool in_backward() const { return open_task_.has_value(); }
  void look_around();  // notices that a backward is over, and which storages died
  Ref ref(const at::Tensor& tensor, Birth birth, const std::string& who);
  void take_times(std::vector<Event>& events) const;
  void fail_later(const std::string& message);
  void check() const;  // throws the error passed to fail_later

  std::recursive_mutex mutex_;
  Trace trace_;
  Storages storages_;
  const bool times_;
  OpClock clock_;
  bool recording_ = true;
  NodeNumber start_;
  std::string failure_;

  std::unordered_map<const c10::TensorImpl*, std::uint32_t> leaves_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> leaf_addresses_;  // never reused
  std::map<CopyKey, std::weak_ptr<c10::Storage>> copies_;
  std::map<StorageNumber, std::uint64_t> counters_;  // version counters of saved storages

  std::optional<int> open_task_;  // LibTorch's number of the present backward
  std::uint32_t backwards_ = 0;
  std::uint32_t segments_ = 0;
  const torch::autograd::Node* open_node_ = nullptr;
  NodeNumber open_number_ = 0;
  Body* open_body_ = nullptr;  // none: the node's run is not recorded
  Body ignored_;               // for further runs of a node
};

}  // namespace ferry::real::capture
