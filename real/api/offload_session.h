// What an Offload is a handle of, in C++ and in Python: the offloaders of its devices, with its
// plan before them, its log and its trace.
//
// A guard of either world does three things with it. It begins a forward (begin_run). It puts these
// hooks in force on its thread, with the context for the checkpoints inside and, over them, the
// plan's spans; how that is done is the guard's own affair (real/api/offload.cpp,
// real/python/guards.cpp). And it ends the forward (end_run), or says that it was cut short
// (abandon_run). The session outlives its guards: graphs own the hooks, and what these need.
//
// Thread-safe. What it does is written in offload.cpp, beside the handle and the guard.
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
  // Throws as Offload's constructors do.
  explicit OffloadSession(const OffloadOptions& options);
  OffloadSession(const Plan& plan, const OffloadOptions& options);

  const CoreOptions& core() const { return core_; }
  DeviceOffloaders& offloaders() { return *offloaders_; }
  // What a guard puts in force: the offloaders, or the plan that asks them.
  const std::shared_ptr<Hooks<at::Tensor>>& hooks() const { return hooks_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }

  // What is exempt is for other forwards, too.
  void exempt(const at::Tensor& tensor);
  OffloadStatistics statistics() const;
  OffloadMemory memory();
  bool saves_nothing() const { return offloaders_->saves_nothing(); }
  std::int64_t other_forwards() const { return others_->count(); }
  bool empty() const;
  void flush();

  // A guard's forward begins, throws PlanMismatch where the last one saved too little; then ends,
  // or was left by an exception. Throws std::logic_error while a stream log is written that this is
  // older than: its copies would not be there, and what reads them would look clean.
  void begin_run();
  void end_run();
  void abandon_run();
  // Throws now what the next begin_run would.
  void require_whole();
  // The plan's spans in a new forward, whose hooks are to be pushed on `around`; null: none, as for
  // a forward without grad mode.
  std::unique_ptr<PlannedSpans::Forward> spans(
      HookStack<at::Tensor> around, PlannedSpans::Forward::Rethrow rethrow = [] {}) const;
  // Of the checkpoints of a new forward, within those that are in force.
  std::shared_ptr<const CheckpointContext> context(CheckpointContext around);

  OffloadStatistics step_statistics() const;
  OffloadLog take_log();
  void write_trace(const std::filesystem::path& path) const;

 private:
  struct Log {
    std::mutex mutex;
    std::vector<Decision> decisions;
  };
  OffloadSession(const OffloadOptions& options, CoreOptions core, const Plan* plan);

  const CoreOptions core_;  // as asked for; the core's own also has the log
  const std::function<void(const std::string&)> info_;
  const std::string alloc_conf_;  // of a plan
  const std::weak_ptr<StreamLog> stream_log_ = StreamLog::active();
  std::atomic<bool> has_told_ = false;
  mutable std::mutex step_mutex_;
  OffloadStatistics at_begin_;
  // Shared with callbacks that may outlive this.
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::function<void(const Decision&)> told_;
  std::shared_ptr<const SegmentPlan> segments_;  // of a plan
  std::atomic<std::uint64_t> runs_ = 0;
  std::shared_ptr<Trace> trace_;
  const std::shared_ptr<OtherForwards> others_;
  std::shared_ptr<DeviceOffloaders> offloaders_;
  std::shared_ptr<DeviceOffloaders> of_others_;  // null: there are none
  std::shared_ptr<PlannedHooks> planned_;
  std::shared_ptr<PlannedSpans> spans_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
};

}  // namespace ferry::real
