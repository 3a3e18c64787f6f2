// Writes the order of a pipeline's workers to a stream log: a record when a task is done, and a
// wait when another task depends on it. So `ferry check` knows which bytes of one thread another
// may use.
//
//     the caller    ──● begun ───────────────────────────────── waits for every task ──
//     compute 0       └─▶ task 0 ──● ──────────── task 2 ──●
//     compute 1       └─▶          └─▶ task 1 ──●
//
// The locks of the workers make this order. The log only reports it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "formats/stream_op.h"
#include "real/api/stream_log.h"
#include "shared/pipeline/workers.h"

namespace ferry::real {

class TaskLog {
 public:
  // Construct it on the caller's thread, before any task.
  TaskLog(std::shared_ptr<StreamLog> log, std::size_t tasks)
      : log_(std::move(log)), begun_(log_->new_event()), done_(tasks) {
    write(StreamOpKind::kRecord, begun_, "begun");
  }
  StreamLog& log() { return *log_; }

  // Call these on a worker: before its first task, before each task, and after each task.
  void begin() { write(StreamOpKind::kWait, begun_, "begin"); }
  void before(const WorkerTask& task) {
    for (const std::size_t other : task.after)
      write(StreamOpKind::kWait, done_[other], "take over");
  }
  void after(std::size_t task) {
    done_[task] = log_->new_event();
    write(StreamOpKind::kRecord, done_[task], "hand over");
  }

  // Call it on the caller's thread, after all workers have ended. Some tasks may not have run.
  void end() {
    for (const EventId event : done_) {
      if (event == EventId{}) continue;
      write(StreamOpKind::kWait, event, "end");
      write(StreamOpKind::kEventDestroy, event, "");
    }
    write(StreamOpKind::kEventDestroy, begun_, "");
  }

 private:
  void write(StreamOpKind kind, EventId event, const char* name) {
    StreamOp op;
    op.kind = kind;
    op.event = event;
    op.name = name;
    if (kind != StreamOpKind::kEventDestroy) op.stream = log_->stream(stream_key(CpuStream()));
    log_->write(op);
  }

  const std::shared_ptr<StreamLog> log_;
  const EventId begun_;
  std::vector<EventId> done_;  // by task; only its worker writes it until it is done
};

}  // namespace ferry::real
