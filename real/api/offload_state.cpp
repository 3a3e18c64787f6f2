#include "real/api/offload_state.h"

#include <c10/core/GradMode.h>
#include <c10/util/Logging.h>

#include <utility>

#include "formats/alloc_conf.h"
#include "formats/error.h"
#include "formats/plan_options.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

CoreOptions to_core(const OffloadOptions& options) {
  CoreOptions core;
  core.host_memory = options.pinned() ? HostMemory::kPinned : HostMemory::kPageable;
  core.copy_streams = options.copy_streams();
  core.reload_pool = options.reload_pool();
  core.bytes_min = options.min_bytes();
  core.window_packs = options.window_tensors();
  core.window_bytes = options.window();
  core.prefetch_bytes = options.prefetch();
  core.prefetch_packs = options.prefetch_tensors();
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

// Whether an allocator's options are those that a plan names; one that names none does not care.
// Options that are not modelled are others.
bool has_alloc_conf(const std::string& settings, const std::string& planned) {
  if (planned.empty()) return true;
  try {
    return to_string(parse_alloc_conf(settings, "the allocator")) == planned;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

OffloadState::OffloadState(const OffloadOptions& options)
    : OffloadState(options, to_core(options), nullptr) {}

OffloadState::OffloadState(const Plan& plan, const OffloadOptions& options)
    : OffloadState(options, to_core(plan, options), &plan) {}

OffloadState::OffloadState(const OffloadOptions& options, CoreOptions core, const Plan* plan)
    : core_(core), info_(options.info()), alloc_conf_(plan ? plan->alloc_conf : "") {
  c10::initLogging();  // reads TORCH_CPP_LOG_LEVEL, as a Python process does
  SpanObserver observer;
  if (plan) segments_ = planned_segments(*plan);
  if (plan && !plan->spans.empty()) spans_ = std::make_shared<PlannedSpans>(plan->spans);
  if (options.log()) {
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
  hooks_ = backends_ = std::make_shared<Backends>(options, std::move(core), std::move(observer));
  if (plan) hooks_ = planned_ = std::make_shared<PlannedHooks>(plan->entries, hooks_);
}

void OffloadState::begin_run() {
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log && log != stream_log_.lock()) {
    throw torch_error(Error(
        "this Offload was made before the stream log that is being written, which would lack its "
        "copies; make it after the log was opened"));
  }
  if (spans_) spans_->begin_run();
  if (planned_) planned_->begin_run();
  backends_->begin_run();
  const std::lock_guard lock(step_mutex_);
  at_begin_ = backends_->statistics();
}

// Says once what is done, when something was saved.
void OffloadState::end_run() {
  const OffloadStatistics step = step_statistics();
  if (step.packs == 0 || has_told_.exchange(true)) return;
  warn_of_allocators();
  const std::string text = "offloading from " + backends_->where() + "; " + to_string(step);
  if (info_) {
    info_(text);
  } else {
    LOG(INFO) << "ferry: " << text;
  }
}

void OffloadState::warn_of_allocators() const {
  for (const c10::Device& device : backends_->devices()) {
    const std::optional<std::string> settings = allocator_settings(device.type());
    if (!settings || has_alloc_conf(*settings, alloc_conf_)) continue;
    const std::string has = settings->empty() ? "the usual options" : "\"" + *settings + "\"";
    const std::string text = "the plan is for PYTORCH_CUDA_ALLOC_CONF=" + alloc_conf_ + "; " +
                             device.str() + "'s allocator has " + has +
                             ", and may need more memory than was planned";
    if (core_.warn) {
      core_.warn(text);
    } else {
      LOG(WARNING) << "ferry: " << text;
    }
  }
}

void OffloadState::abandon_run() {
  if (planned_) planned_->abandon_run();
}

std::unique_ptr<PlannedSpans::Forward> OffloadState::spans(
    HookStack<at::Tensor> around, PlannedSpans::Forward::Rethrow rethrow) const {
  if (!spans_ || !c10::GradMode::is_enabled()) return nullptr;
  return std::make_unique<PlannedSpans::Forward>(spans_, std::move(around), rethrow);
}

std::shared_ptr<const CheckpointContext> OffloadState::context(CheckpointContext around) {
  around.run = std::make_shared<CheckpointRun>(++runs_, told_);
  if (segments_) around.plan = std::make_shared<PlannedSegments>(segments_);
  return std::make_shared<const CheckpointContext>(std::move(around));
}

OffloadStatistics OffloadState::step_statistics() const {
  const std::lock_guard lock(step_mutex_);
  return backends_->statistics().since(at_begin_);
}

OffloadLog OffloadState::take_log() {
  const std::lock_guard lock(log_->mutex);
  return {std::exchange(log_->decisions, {})};
}

void OffloadState::write_trace(const std::filesystem::path& path) const {
  TORCH_CHECK_VALUE(trace_, "a trace needs OffloadOptions::trace");
  backends_->flush();
  trace_->write(path);
}

}  // namespace ferry::real
