#include "real/capture/recorder.h"

#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <utility>

#include "ferry/capture.h"
#include "real/api/known_op.h"
#include "real/api/replayed_op.h"
#include "real/capture/op_call.h"
#include "real/capture/recorder_scope.h"
#include "real/tensors/torch_error.h"

namespace ferry::real::capture {

namespace autograd = torch::autograd;

// Autograd holds this object instead of a saved tensor.
class Recorder::Packed final : public Saved<at::Tensor> {
 public:
  Packed(std::shared_ptr<Recorder> recorder, PackNumber pack, std::shared_ptr<c10::Storage> bytes,
         const at::Tensor& tensor)
      : number(pack),
        storage(std::move(bytes)),
        layout(TorchTensors::layout(tensor)),
        version(TorchTensors::version(tensor)),
        version_at_pack(TorchTensors::read(version)),
        recorder_(std::move(recorder)) {}
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() override { recorder_->dropped(number); }
  at::Tensor unpack() override { return recorder_->unpack(*this); }

  const PackNumber number;
  const std::shared_ptr<c10::Storage> storage;
  const TorchLayout layout;
  const TorchTensors::Version version;
  const std::uint64_t version_at_pack;

 private:
  const std::shared_ptr<Recorder> recorder_;
};

std::unique_ptr<Saved<at::Tensor>> Recorder::Pair::pack(const at::Tensor& tensor) {
  return recorder_->pack(tensor);
}

namespace {

// Returns the device of the first given tensor that is not on the CPU, if there is one.
std::optional<c10::Device> accelerator_of(const std::vector<GivenTensor>& given) {
  for (const GivenTensor& each : given) {
    if (!each.tensor.is_cpu()) return each.tensor.device();
  }
  return std::nullopt;
}

}  // namespace

Recorder::Recorder(const std::vector<GivenTensor>& given, bool times)
    : storages_(trace_.storages),
      times_(times),
      clock_(times ? accelerator_of(given) : std::nullopt),
      start_(static_cast<NodeNumber>(at::sequence_number::peek())) {
  for (const GivenTensor& each : given) {
    const auto index = static_cast<std::uint32_t>(trace_.given.size());
    trace_.given.push_back({each.kind, each.name, ref(each.tensor, Birth::kGiven, each.name),
                            each.tensor.requires_grad() && each.tensor.is_leaf()});
    const auto leaf = static_cast<std::uint32_t>(trace_.leaves.size());
    if (leaves_.emplace(each.tensor.unsafeGetTensorImpl(), leaf).second) {
      trace_.leaves.push_back({index});
      leaf_addresses_.emplace_back(each.tensor.getIntrusivePtr());
    }
  }
}

Trace Recorder::finish() {
  const std::lock_guard lock(mutex_);
  look_around();
  recording_ = false;
  check();
  clock_.finish();
  take_times(trace_.events);
  for (auto& [node, body] : trace_.bodies) take_times(body.events);
  return std::move(trace_);
}

void Recorder::take_times(std::vector<Event>& events) const {
  for (Event& event : events) {
    auto* const op = std::get_if<OpEvent>(&event);
    if (op && op->clocked) op->measured_ns = clock_.device_ns(*op->clocked);
  }
}

// The following calls record ops.

void Recorder::run_op(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
  // Ops inside the op are not recorded.
  const c10::impl::ExcludeDispatchKeyGuard inside(kRecordKey);
  const c10::DispatchKeySet below =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kRecordKey);
  Recorder* const recorder = Scope::active();
  std::optional<OpEvent> event;
  if (recorder) event = recorder->before_op(op, *stack);
  if (!event) {
    op.redispatchBoxed(below, stack);
    return;
  }
  const OpClock::Begun begun = recorder->clock_.begin();
  op.redispatchBoxed(below, stack);
  event->measured_ns = recorder->clock_.end(begun);
  event->clocked = begun.op;
  recorder->after_op(*std::move(event), op, *stack);
}

std::optional<OpEvent> Recorder::before_op(const c10::OperatorHandle& op,
                                           const torch::jit::Stack& stack) {
  const std::lock_guard lock(mutex_);
  check();
  look_around();
  if (!sink()) return std::nullopt;
  OpEvent event;
  event.made = made();
  event.name = label(op);
  event.once = !in_backward() && !can_run_again(op, stack);
  event.flags = flags_of(op, stack);
  each_argument(op, stack, [&](const at::Tensor& tensor, bool writes) {
    if (writes) event.writes.push_back(static_cast<std::uint32_t>(event.in.size()));
    event.in.push_back(ref(tensor, Birth::kMet, event.name));
  });
  return event;
}

void Recorder::after_op(OpEvent event, const c10::OperatorHandle& op,
                        const torch::jit::Stack& stack) {
  const std::lock_guard lock(mutex_);
  bool on_cpu = true;
  bool on_accelerator = true;  // except numbers: the seeds of a dropout stay on the host
  const std::size_t returns = op.schema().returns().size();
  for (std::size_t i = stack.size() - returns; i < stack.size(); ++i) {
    each_tensor(stack[i], [&](const at::Tensor& tensor) {
      on_cpu = on_cpu && tensor.is_cpu();
      const bool number = tensor.is_cpu() && tensor.dim() == 0;
      on_accelerator = on_accelerator && (number || clock_.watches(tensor.device().type()));
      require_plain(tensor, event.name);
      if (!storages_.knows(tensor.storage())) {
        event.out.push_back(ref(tensor, Birth::kOp, event.name));
      }
    });
  }
  if (event.out.empty() && event.writes.empty()) return;  // a view, or reading a shape
  set_costs(event);
  if (!times_ || !on_cpu) event.measured_ns = 0;
  if (!on_accelerator || on_cpu) event.clocked = std::nullopt;
  sink()->emplace_back(std::move(event));
}

// The following calls record saved tensors.

std::unique_ptr<Saved<at::Tensor>> Recorder::pack(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!recording_) {
    throw torch_error(
        CaptureError("a tensor is saved under the hooks of a capture that has ended"));
  }
  check();
  look_around();
  if (in_backward()) {
    throw torch_error(
        CaptureError(short_name(*autograd::get_current_node()) +
                     " saves tensors in backward (create_graph, or a recomputation of its own): "
                     "such a step cannot be captured"));
  }
  const Ref saved = ref(tensor, Birth::kMet, "a save");
  const TorchTensors::Version version = TorchTensors::version(tensor);
  const std::uint64_t counter = TorchTensors::identity(version);
  if (counters_.try_emplace(saved.storage, counter).first->second != counter) {
    throw torch_error(
        CaptureError("two tensors are saved that share a storage and not a version counter "
                     "(Tensor::variable_data, unsafe_split): a program cannot say so"));
  }
  const auto number = static_cast<PackNumber>(trace_.packs.size());
  trace_.packs.push_back({made() - 1, saved});
  trace_.events.emplace_back(PackEvent{made(), number});
  std::shared_ptr<c10::Storage> bytes;
  if (trace_.storages[saved.storage].birth == Birth::kGiven) {
    bytes = std::make_shared<c10::Storage>(tensor.storage());
  } else {
    std::weak_ptr<c10::Storage>& known =
        copies_[{saved.storage, counter, TorchTensors::read(version)}];
    bytes = known.lock();
    if (!bytes) known = bytes = std::make_shared<c10::Storage>(copied(tensor));
  }
  return std::make_unique<Packed>(shared_from_this(), number, std::move(bytes), tensor);
}

at::Tensor Recorder::unpack(const Packed& packed) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t version = TorchTensors::read(packed.version);
  if (version != packed.version_at_pack)
    throw torch_error(ModifiedInPlace(version, packed.version_at_pack));
  at::Tensor tensor = TorchTensors::restore(*packed.storage, packed.layout, 0, packed.version);
  if (!recording_ || !open_body_) return tensor;
  check();
  open_body_->saved.emplace(packed.number, ref(tensor, Birth::kCopy, "unpack"));
  // A node unpacks what it packed itself. There is one exception: a CopySlices wraps an earlier
  // node and runs as it. Any other later node reuses what was saved for another, and cannot be
  // captured.
  NodeNumber& owner = trace_.packs[packed.number].node;
  if (open_number_ > owner && trace_.nodes[open_number_].name != "CopySlices") {
    throw torch_error(
        CaptureError(trace_.nodes[open_number_].name +
                     " unpacks what another node saved: a model that checkpoints by itself "
                     "cannot be captured"));
  }
  owner = open_number_;
  return tensor;
}

void Recorder::dropped(PackNumber pack) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || autograd::get_current_graph_task_id() != kNoTask) return;
  look_around();
  trace_.events.emplace_back(DropEvent{pack});
}

// The following calls record segments.

CheckpointScope Recorder::segment(const std::vector<at::Tensor>& arguments, bool reentrant) {
  if (!c10::GradMode::is_enabled()) return nullptr;  // without grad mode it is no segment
  if (reentrant) throw torch_error(CaptureError("a reentrant checkpoint cannot be captured"));
  const auto stack = TorchAutograd().hooks();
  if (stack.disabled || !stack.top || !stack.top->pair) {
    throw torch_error(
        CaptureError("a checkpoint where no hooks see what is saved cannot be captured"));
  }
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    name = "checkpoint." + std::to_string(segments_++);
  }
  segment_event(name, true, arguments);
  return {nullptr,
          [self = shared_from_this(), name](void*) { self->segment_event(name, false, {}); }};
}

void Recorder::segment_event(const std::string& name, bool enter,
                             const std::vector<at::Tensor>& arguments) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || in_backward()) return;
  look_around();
  SegmentEvent event{made(), name, enter, {}, {}};
  for (const at::Tensor& argument : arguments) {
    if (!argument.defined()) continue;
    event.arguments.push_back(ref(argument, Birth::kMet, name));
    autograd::Node* const function = autograd::impl::grad_fn_unsafe(argument);
    if (!function) continue;
    note(function);
    event.behind.push_back(
        {number_of(*function), static_cast<std::uint32_t>(argument.output_nr())});
  }
  trace_.events.emplace_back(std::move(event));
}

// The following calls record what has changed since the last event.

std::vector<Event>* Recorder::sink() {
  if (!recording_) return nullptr;
  if (!in_backward()) return &trace_.events;
  return open_body_ ? &open_body_->events : nullptr;
}

void Recorder::look_around() {
  if (!recording_) return;
  if (in_backward() && autograd::get_current_graph_task_id() == kNoTask) open_task_.reset();
  for (const StorageNumber dead : storages_.died()) {
    StorageInfo& info = trace_.storages[dead];
    info.died = true;
    if (in_backward()) info.died_in = backwards_ - 1;
    counters_.erase(dead);
    if (std::vector<Event>* const to = sink()) to->emplace_back(DeathEvent{dead});
  }
}

Ref Recorder::ref(const at::Tensor& tensor, Birth birth, const std::string& who) {
  require_plain(tensor, who);
  return {storages_.number(tensor.storage(), birth, in_backward()), layout_of(tensor)};
}

void Recorder::fail_later(const std::string& message) {
  if (failure_.empty()) failure_ = message;
}

void Recorder::check() const {
  if (!failure_.empty()) throw torch_error(CaptureError(failure_));
}

}  // namespace ferry::real::capture
