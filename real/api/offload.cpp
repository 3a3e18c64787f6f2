#include "ferry/offload.h"

#include <c10/util/Logging.h>
#include <torch/nn/module.h>

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "real/api/backends.h"
#include "real/api/planned.h"
#include "real/api/trace.h"
#include "real/autograd/thread_end.h"
#include "shared/seam/checkpoint_context.h"

namespace ferry {
namespace {

using real::TorchAutograd;

CoreOptions to_core(const OffloadOptions& options) {
  CoreOptions core;
  core.host_memory = options.pinned() ? HostMemory::kPinned : HostMemory::kPageable;
  core.copy_streams = options.copy_streams();
  core.reload_pool = options.reload_pool();
  core.bytes_min = options.min_bytes();
  core.window_packs = options.window_tensors();
  core.window_bytes = options.window();
  core.prefetch_bytes = options.prefetch();
  core.hold_bytes = options.hold();
  core.warn = options.warn();
  return core;
}

CoreOptions to_core(const Plan& plan, const OffloadOptions& options) {
  CoreOptions core = planned_options(plan);
  core.warn = options.warn();
  return core;
}

}  // namespace

namespace offload_impl {

class State {
 public:
  State(const OffloadOptions& options, CoreOptions core, const Plan* plan)
      : core_(core), info_(options.info()) {
    c10::initLogging();  // reads TORCH_CPP_LOG_LEVEL, as a Python process does
    real::SpanObserver observer;
    if (plan) segments_ = planned_segments(*plan);
    if (options.log()) {
      told_ = [log = log_](const Decision& decision) {
        const std::lock_guard lock(log->mutex);
        log->decisions.push_back(decision);
      };
      core.log = told_;
    }
    if (options.trace()) {
      trace_ = std::make_shared<real::Trace>();
      observer = [trace = trace_](const real::Span& span) { trace->add(span); };
    }
    hooks_ = backends_ =
        std::make_shared<real::Backends>(options, std::move(core), std::move(observer));
    if (plan) hooks_ = planned_ = std::make_shared<real::PlannedHooks>(plan->entries, hooks_);
  }

  const CoreOptions& core() const { return core_; }
  real::Backends& backends() { return *backends_; }
  const std::shared_ptr<Hooks<at::Tensor>>& hooks() const { return hooks_; }
  const std::shared_ptr<real::Trace>& trace() const { return trace_; }

  void abandon_run() {
    if (planned_) planned_->abandon_run();
  }
  void begin_run() {
    if (planned_) planned_->begin_run();
    backends_->begin_run();
    const std::lock_guard lock(step_mutex_);
    at_begin_ = backends_->statistics();
  }
  OffloadStatistics step_statistics() const {
    const std::lock_guard lock(step_mutex_);
    return backends_->statistics().since(at_begin_);
  }
  // Reports once, when something was saved.
  void tell() {
    const OffloadStatistics step = step_statistics();
    if (step.packs == 0 || has_told_.exchange(true)) return;
    const std::string text = "offloading from " + backends_->where() + "; " + to_string(step);
    if (info_) {
      info_(text);
    } else {
      LOG(INFO) << "ferry: " << text;
    }
  }
  // The context of the checkpoints in a new forward.
  std::shared_ptr<const CheckpointContext> context() {
    CheckpointContext context = checkpoint_context(TorchAutograd().hooks());
    context.run = std::make_shared<CheckpointRun>(++runs_, told_);
    if (segments_) context.plan = std::make_shared<PlannedSegments>(segments_);
    return std::make_shared<const CheckpointContext>(std::move(context));
  }
  OffloadLog take_log() {
    const std::lock_guard lock(log_->mutex);
    return {std::exchange(log_->decisions, {})};
  }

 private:
  struct Log {
    std::mutex mutex;
    std::vector<Decision> decisions;
  };
  const CoreOptions core_;  // the options as given; the core's own also have the log
  const std::function<void(const std::string&)> info_;
  std::atomic<bool> has_told_ = false;
  mutable std::mutex step_mutex_;
  OffloadStatistics at_begin_;
  // Shared with callbacks that may outlive this object.
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::function<void(const Decision&)> told_;
  std::shared_ptr<const SegmentPlan> segments_;  // from a plan
  std::atomic<std::uint64_t> runs_ = 0;
  std::shared_ptr<real::Trace> trace_;
  std::shared_ptr<real::Backends> backends_;
  std::shared_ptr<real::PlannedHooks> planned_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
};

class Frame {
 public:
  explicit Frame(std::shared_ptr<State> state) : state_(std::move(state)) {
    state_->begin_run();
    if (state_->trace()) ops_.emplace(state_->trace());
    hooks_.emplace(TorchAutograd(), state_->hooks(), state_->context());
  }
  Frame() { none_.emplace(TorchAutograd()); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    if (!state_) return;
    if (std::uncaught_exceptions() > exceptions_) {
      state_->abandon_run();
    } else {
      state_->tell();
    }
  }

 private:
  std::shared_ptr<State> state_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<real::OpTraceScope> ops_;
  std::optional<HooksGuard<TorchAutograd>> hooks_;
  std::optional<NoHooksGuard<TorchAutograd>> none_;
};

}  // namespace offload_impl

Offload::Offload(OffloadOptions options)
    : state_(std::make_shared<offload_impl::State>(options, to_core(options), nullptr)) {}

Offload::Offload(const Plan& plan, OffloadOptions options)
    : state_(std::make_shared<offload_impl::State>(options, to_core(plan, options), &plan)) {}

void Offload::exempt(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) exempt(parameter);
  for (const torch::Tensor& buffer : module.buffers()) exempt(buffer);
}

void Offload::exempt(const torch::Tensor& tensor) { state_->backends().exempt(tensor); }

OffloadStatistics Offload::statistics() const { return state_->backends().statistics(); }

OffloadStatistics Offload::step_statistics() const { return state_->step_statistics(); }

const CoreOptions& Offload::core_options() const { return state_->core(); }

bool Offload::empty() const { return state_->backends().empty(); }

OffloadLog Offload::take_log() { return state_->take_log(); }

void Offload::write_trace(const std::filesystem::path& path) const {
  TORCH_CHECK_VALUE(state_->trace(), "a trace needs OffloadOptions::trace");
  state_->backends().flush();
  state_->trace()->write(path);
}

OffloadGuard::OffloadGuard(const Offload& offload)
    : offload_(offload), frame_(std::make_unique<offload_impl::Frame>(offload_.state_)) {}
OffloadGuard::OffloadGuard(OffloadOptions options) : OffloadGuard(Offload(std::move(options))) {}
OffloadGuard::~OffloadGuard() { real::leave_at_thread_end(frame_); }

NoOffloadGuard::NoOffloadGuard() : frame_(std::make_unique<offload_impl::Frame>()) {}
NoOffloadGuard::~NoOffloadGuard() { real::leave_at_thread_end(frame_); }

Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options) {
  return Offload(read_plan(path), std::move(options));
}

}  // namespace ferry
