// Observes one step of a LibTorch program and fills a Trace (trace.h), from which ferry::capture
// makes a program (capture.cpp, lower.h).
//
//   ops           a boxed fallback on an unused dispatch key (DispatchKey::Fake) just below
//                 autograd, which the thread includes while a scope lives
//   saved tensors a pair of hooks. Its pack keeps a copy of the storage and drops the original, so
//                 storages die as they would if everything were offloaded
//   the graph     RecordFunction, from the results of each op
//   segments      a call of checkpoint reports its begin and end
//   backward      a hook before and one after each node
//
// Recording does not change what the step computes: it makes no node, does not ask a view for its
// gradient function (which would make a node), and keeps no tensor alive.
//
// Saves of one version of a storage share one copy, and unpacked tensors share it as they would
// share the original. Parameters, buffers and inputs stay alive anyway, so they are saved as they
// are. Calls may come from the engine's threads; they run one at a time.
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
  // `times` says whether to record the times of ops.
  Recorder(const std::vector<GivenTensor>& given, bool times);

  // While it lives, the step of the calling thread is recorded. Only one may live in a process.
  class Scope;

  // Ends the recording. Throws CaptureError if something could not be recorded and could not throw
  // at once.
  Trace finish();

  class Pair;

 private:
  class Packed;
  class Entering;
  class Leaving;
  struct Observer;
  // A version of a storage: (storage, version counter, version).
  using CopyKey = std::tuple<StorageNumber, std::uint64_t, std::uint64_t>;
  static constexpr int kNoTask = -1;  // LibTorch's number for no task

  static void run_op(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
  std::optional<OpEvent> before_op(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  void after_op(OpEvent event, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor);
  at::Tensor unpack(const Packed& packed);
  void dropped(PackNumber pack);

  // Records a call of ferry::checkpoint, which does not recompute during a recording. The returned
  // scope ends the call.
  CheckpointScope segment(const std::vector<at::Tensor>& arguments, bool reentrant);
  void segment_event(const std::string& name, bool enter, const std::vector<at::Tensor>& arguments);

  // The graph, and what backward runs, are recorded in recorder_graph.cpp.
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
  static std::string short_name(const torch::autograd::Node& node);  // without its namespace

  // Returns the list to which events are added now, or null.
  std::vector<Event>* sink();
  bool in_backward() const { return open_task_.has_value(); }
  void look_around();  // notices the end of a backward and the death of storages
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
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> leaf_addresses_;  // kept from being reused
  std::map<CopyKey, std::weak_ptr<c10::Storage>> copies_;
  std::map<StorageNumber, std::uint64_t> counters_;  // version counters of saved storages

  std::optional<int> open_task_;  // LibTorch's number for the present backward
  std::uint32_t backwards_ = 0;
  std::uint32_t segments_ = 0;
  const torch::autograd::Node* open_node_ = nullptr;
  NodeNumber open_number_ = 0;
  Body* open_body_ = nullptr;  // null if the run of the node is not recorded
  Body ignored_;               // for further runs of a node
};

}  // namespace ferry::real::capture
