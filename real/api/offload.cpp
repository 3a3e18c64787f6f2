// Offload and its guard: the entry point for C++ programs. The options, the plan and the log belong
// to an OffloadSession. Python's entry point uses the same session (real/python/guards.cpp).
//
// The path of a saved tensor, and the files to read:
//
//   guard    ferry/offload.h, this file, offload_session.h: OffloadGuard begins a forward and puts
//            the session's hooks (shared/seam/hooks.h) into LibTorch's slot
//            (real/autograd/hooks_slot.h).
//   save     real/engine/engine.cpp gives LibTorch these hooks for each tensor that a node saves.
//            device_offloaders.h, .cpp call the core of the tensor's device.
//   core     shared/offload/offload_core.h packs under its lock (section.h, context.h). It decides
//            if the tensor moves (choice.h), finds or makes a parcel (tracker.h, parcel.h) and
//            starts the copy (outbound.h).
//   copy     Device::offload and reload: real/cpu/cpu_device.h, .cpp (CUDA: real/cuda).
//   back     The node unpacks: hooks_slot.h, offload_core.h, inbound.h. real/tensors/
//            torch_tensors.h, .cpp make the view on the reloaded storage.
#include "ferry/offload.h"

#include <c10/core/GradMode.h>
#include <c10/util/Logging.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "formats/error.h"
#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "real/api/offload_session.h"
#include "real/autograd/thread_end.h"
#include "real/tensors/torch_error.h"

namespace ferry {
namespace real {
namespace {

// Converts options to those of the core. Options have two names only here, and where a plan for
// stages is converted back (real/train/gpt_pipe.cpp). The names in the core contain the unit,
// because plan files and decision logs use them. The user's names are shorter, because a value may
// have a unit ("64MiB") in Python and `ferry train`.
CoreOptions to_core(const OffloadOptions& options) {
  CoreOptions core;
  core.host_memory = options.pinned() ? HostMemory::kPinned : HostMemory::kPageable;
  core.copy_streams = options.copy_streams();
  core.reload_pool = options.reload_pool();
  core.min_bytes = options.min_bytes();
  core.window_tensors = options.window_tensors();
  core.window_bytes = options.window();
  core.prefetch_bytes = options.prefetch();
  core.prefetch_tensors = options.prefetch_tensors();
  core.hold_bytes = options.hold();
  core.keep_when_full = options.keep_when_full();
  core.warn = options.warn();
  return core;
}

CoreOptions to_core(const Plan& plan, const OffloadOptions& options) {
  CoreOptions core = planned_options(plan);
  core.keep_when_full = options.keep_when_full();
  core.warn = options.warn();
  return core;
}

// Returns the options of the core for forwards that do not match the plan.
CoreOptions core_of_others(const OffloadOptions& options) {
  CoreOptions core = to_core(options);
  if (options.other_shapes() == OtherShapes::kKeep) {
    core.min_bytes = std::numeric_limits<std::int64_t>::max();
  }
  return core;
}

// With other shapes a segment may save another number of tensors, so the number is not checked.
std::shared_ptr<const SegmentPlan> segments_of_any_size(const SegmentPlan& planned) {
  auto plan = std::make_shared<SegmentPlan>(planned);
  for (SegmentPlan& segment : plan->segments) segment.packs.reset();
  return plan;
}

}  // namespace

OffloadSession::OffloadSession(const OffloadOptions& options)
    : OffloadSession(options, to_core(options), nullptr) {}

OffloadSession::OffloadSession(const Plan& plan, const OffloadOptions& options)
    : OffloadSession(options, to_core(plan, options), &plan) {}

OffloadSession::OffloadSession(const OffloadOptions& options, CoreOptions core, const Plan* plan)
    : core_(core),
      info_(options.info()),
      alloc_conf_(plan ? plan->alloc_conf : ""),
      others_(std::make_shared<OtherForwards>(options.other_shapes())) {
  c10::initLogging();  // reads TORCH_CPP_LOG_LEVEL, as in a Python process
  SpanObserver observer;
  if (plan) segments_ = planned_segments(*plan);
  if (segments_ && others_->are_allowed()) segments_ = segments_of_any_size(*segments_);
  if (plan && !plan->spans.empty()) {
    spans_ = std::make_shared<PlannedSpans>(plan->spans, others_);
  }
  if (options.decisions()) {
    told_ = [log = log_](const Decision& decision) {
      const std::lock_guard lock(log->mutex);
      log->decisions.push_back(decision);
    };
    core.log = told_;
  }
  if (options.trace()) {
    trace_ = std::make_shared<Trace>();
    observer = [trace = trace_](const Span& span) { trace->add(span); };
  }
  hooks_ = offloaders_ = std::make_shared<DeviceOffloaders>(options, std::move(core), observer);
  if (!plan) return;
  if (others_->are_allowed()) {
    of_others_ =
        std::make_shared<DeviceOffloaders>(options, core_of_others(options), std::move(observer));
  }
  hooks_ = planned_ =
      std::make_shared<PlannedHooks>(plan->entries, offloaders_, others_, of_others_);
}

void OffloadSession::exempt(const at::Tensor& tensor) {
  offloaders_->exempt(tensor);
  if (of_others_) of_others_->exempt(tensor);
}

OffloadStatistics OffloadSession::statistics() const {
  OffloadStatistics sum = offloaders_->statistics();
  if (of_others_) sum += of_others_->statistics();
  return sum;
}

// Both offloaders report the memory of the same devices, so take the maximum, not the sum.
OffloadMemory OffloadSession::memory() {
  OffloadMemory known = offloaders_->memory();
  if (of_others_) {
    const OffloadMemory others = of_others_->memory();
    known.peak_bytes = std::max(known.peak_bytes, others.peak_bytes);
    known.peak_without_bytes = std::max(known.peak_without_bytes, others.peak_without_bytes);
  }
  return known;
}

bool OffloadSession::empty() const {
  return offloaders_->empty() && (!of_others_ || of_others_->empty());
}

void OffloadSession::flush() {
  offloaders_->flush();
  if (of_others_) of_others_->flush();
}

void OffloadSession::begin_run() {
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log && log != stream_log_.lock()) {
    throw torch_error(Error(
        "this Offload was made before the open stream log, so its copies would be missing there; "
        "make the Offload after you open the log"));
  }
  if (spans_) spans_->begin_run();
  if (planned_) planned_->begin_run();
  offloaders_->begin_run();
  if (of_others_) of_others_->begin_run();
  const std::lock_guard lock(step_mutex_);
  at_begin_ = statistics();
}

// After the first forward that saved something, reports what is offloaded.
void OffloadSession::end_run() {
  memory();  // takes a sample while most tensors are on the host
  const OffloadStatistics step = step_statistics();
  if (step.packs == 0 || has_told_.exchange(true)) return;
  warn_of_allocators(offloaders_->devices(), alloc_conf_, core_.warn);
  const std::string text = "offloading from " + offloaders_->where() + "; " + to_string(step);
  if (info_) {
    info_(text);
  } else {
    LOG(INFO) << "ferry: " << text;
  }
}

void OffloadSession::abandon_run() {
  if (planned_) planned_->abandon_run();
}

void OffloadSession::require_whole() {
  if (spans_) spans_->begin_run();
  if (planned_) planned_->end_run();
}

std::unique_ptr<PlannedSpans::Forward> OffloadSession::spans(
    HookStack<at::Tensor> around, PlannedSpans::Forward::Rethrow rethrow) const {
  if (!spans_ || !c10::GradMode::is_enabled()) return nullptr;
  return std::make_unique<PlannedSpans::Forward>(spans_, std::move(around), rethrow);
}

std::shared_ptr<const CheckpointContext> OffloadSession::context(CheckpointContext around) {
  around.run = std::make_shared<CheckpointRun>(++runs_, told_);
  if (segments_) around.plan = std::make_shared<PlannedSegments>(segments_);
  return std::make_shared<const CheckpointContext>(std::move(around));
}

OffloadStatistics OffloadSession::step_statistics() const {
  const std::lock_guard lock(step_mutex_);
  return statistics().since(at_begin_);
}

std::vector<Decision> OffloadSession::take_decisions() {
  const std::lock_guard lock(log_->mutex);
  return std::exchange(log_->decisions, {});
}

void OffloadSession::write_trace(const std::filesystem::path& path) const {
  TORCH_CHECK_VALUE(trace_, "a trace needs OffloadOptions::trace");
  offloaders_->flush();
  if (of_others_) of_others_->flush();
  trace_->write(path);
}

}  // namespace real

std::string to_string(const OffloadMemory& memory) {
  if (memory.peak_bytes == 0) return "";
  return "peak memory " + in_mebibytes(memory.peak_bytes) + ", without moving at least " +
         in_mebibytes(memory.peak_without_bytes);
}

Offload::Offload(OffloadOptions options)
    : session_(std::make_shared<real::OffloadSession>(options)) {}

Offload::Offload(const Plan& plan, OffloadOptions options)
    : session_(std::make_shared<real::OffloadSession>(plan, options)) {}

void Offload::exempt(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) exempt(parameter);
  for (const torch::Tensor& buffer : module.buffers()) exempt(buffer);
}

void Offload::exempt(const torch::Tensor& tensor) { session_->exempt(tensor); }

OffloadStatistics Offload::statistics() const { return session_->statistics(); }

OffloadStatistics Offload::step_statistics() const { return session_->step_statistics(); }

const CoreOptions& Offload::core_options() const { return session_->core(); }

OffloadMemory Offload::memory() const { return session_->memory(); }
bool Offload::saves_nothing() const { return session_->saves_nothing(); }
bool Offload::empty() const { return session_->empty(); }

std::int64_t Offload::other_forwards() const { return session_->other_forwards(); }

std::vector<Decision> Offload::take_decisions() { return session_->take_decisions(); }

void Offload::write_trace(const std::filesystem::path& path) const { session_->write_trace(path); }

// One forward under a guard. Members are in the order in which they take effect. If an exception is
// in flight at the end, the forward counts as failed.
class OffloadGuard::Forward {
 public:
  explicit Forward(std::shared_ptr<real::OffloadSession> session) : session_(std::move(session)) {
    const TorchAutograd autograd;
    session_->begin_run();
    if (session_->trace()) ops_.emplace(session_->trace());
    hooks_.emplace(autograd, session_->hooks(),
                   session_->context(checkpoint_context(autograd.hooks())));
    spans_ = session_->spans(autograd.hooks());
    if (spans_) hooks_of_spans_.emplace(autograd, spans_->hooks());
  }
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;
  ~Forward() {
    const bool failed = std::uncaught_exceptions() > exceptions_ || (spans_ && !spans_->end());
    failed ? session_->abandon_run() : session_->end_run();
  }

 private:
  using TorchAutograd = real::TorchAutograd;

  const std::shared_ptr<real::OffloadSession> session_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<real::OpTraceScope> ops_;
  std::optional<HooksGuard<TorchAutograd>> hooks_;
  std::unique_ptr<real::PlannedSpans::Forward> spans_;
  std::optional<HooksGuard<TorchAutograd>> hooks_of_spans_;
};

OffloadGuard::OffloadGuard(const Offload& offload)
    : offload_(offload), forward_(std::make_unique<Forward>(offload_.session_)) {}
OffloadGuard::OffloadGuard(OffloadOptions options) : OffloadGuard(Offload(std::move(options))) {}
OffloadGuard::~OffloadGuard() { real::leave_at_thread_end(forward_); }

Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options) {
  Plan plan;
  try {
    plan = read_plan(path);
  } catch (const InputError& error) {
    throw real::torch_error(ValueError(error.what()));
  }
  return Offload(std::move(plan), std::move(options));
}

}  // namespace ferry
