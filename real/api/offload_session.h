// The state behind an Offload, in C++ and in Python: the offloaders of its devices, its plan, its
// decisions and its trace.
//
// A guard, in C++ or Python, does three things. It begins a forward (begin_run). It installs the
// session's hooks on its thread, with the context for checkpoints, and on top of them the spans of
// the plan; each kind of guard does this in its own way (real/api/offload.cpp,
// real/python/guards.cpp). At its end it ends the forward (end_run), or says that an error cut it
// short (abandon_run). The session outlives its guards, because graphs own the hooks and what they
// need.
//
// Thread-safe. The implementation is in offload.cpp, with the handle and the guard.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ferry/offload.h"
#include "real/api/device_offloaders.h"
#include "real/api/other_forwards.h"
#include "real/api/planned.h"
#include "real/api/planned_spans.h"
#include "real/api/trace.h"
#include "shared/seam/checkpoint_context.h"

namespace ferry::real {

class OffloadSession {
 public:
  // Throws what the constructors of Offload throw.
  explicit OffloadSession(const OffloadOptions& options);
  OffloadSession(const Plan& plan, const OffloadOptions& options);

  const CoreOptions& core() const { return core_; }
  DeviceOffloaders& offloaders() { return *offloaders_; }
  // The hooks that a guard installs: those of the offloaders, or those of the plan in front of
  // them.
  const std::shared_ptr<Hooks<at::Tensor>>& hooks() const { return hooks_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }

  // Exempt tensors are exempt in forwards that do not match the plan, too.
  void exempt(const at::Tensor& tensor);
  OffloadStatistics statistics() const;
  OffloadMemory memory();
  bool saves_nothing() const { return offloaders_->saves_nothing(); }
  std::int64_t other_forwards() const { return others_->count(); }
  bool empty() const;
  void flush();

  // Begins a forward, ends it, or ends it after an exception. begin_run throws PlanMismatch if the
  // last forward saved too few tensors. It throws an Error if a stream log is being written that
  // was opened after this session was made: the copies would be missing, and the log would look
  // clean.
  void begin_run();
  void end_run();
  void abandon_run();
  // Throws now what the next begin_run would throw.
  void require_whole();
  // Returns the spans of the plan for a new forward; their hooks must be pushed on `around`. Null
  // if there are none, or without grad mode.
  std::unique_ptr<PlannedSpans::Forward> spans(
      HookStack<at::Tensor> around, PlannedSpans::Forward::Rethrow rethrow = [] {}) const;
  // Returns the context for the checkpoints of a new forward, given the context in force.
  std::shared_ptr<const CheckpointContext> context(CheckpointContext around);

  OffloadStatistics step_statistics() const;
  std::vector<Decision> take_decisions();
  void write_trace(const std::filesystem::path& path) const;

 private:
  struct Log {
    std::mutex mutex;
    std::vector<Decision> decisions;
  };
  OffloadSession(const OffloadOptions& options, CoreOptions core, const Plan* plan);

  const CoreOptions core_;  // as the user set them; the core's own also have the log
  const std::function<void(const std::string&)> info_;
  const std::string alloc_conf_;  // from the plan
  const std::weak_ptr<StreamLog> stream_log_ = StreamLog::active();
  std::atomic<bool> has_told_ = false;
  mutable std::mutex step_mutex_;
  OffloadStatistics at_begin_;
  // Shared with callbacks that may outlive the session.
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::function<void(const Decision&)> told_;
  std::shared_ptr<const SegmentPlan> segments_;  // from the plan
  std::atomic<std::uint64_t> runs_ = 0;
  std::shared_ptr<Trace> trace_;
  const std::shared_ptr<OtherForwards> others_;
  std::shared_ptr<DeviceOffloaders> offloaders_;
  std::shared_ptr<DeviceOffloaders> of_others_;  // null unless other shapes are allowed
  std::shared_ptr<PlannedHooks> planned_;
  std::shared_ptr<PlannedSpans> spans_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
};

}  // namespace ferry::real
