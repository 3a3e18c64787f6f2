// Executes the spans of a plan (formats/spans.h). It counts the ops of a forward as the capture
// did, begins and ends each span at its position, and keeps the results that the plan keeps.
//
// An op counts if it writes in place or makes a storage, on the thread of the forward and outside
// any backward. The node of an op is made before the op runs, and may save before and after it.
// LibTorch numbers nodes (the sequence number). If no node was made since an op ran, a saved tensor
// belongs to that op, otherwise to the next one. A span has ended when the next op runs or saves.
//
// If only a backward that gets its gradients follows the last op of a span, the span ends with the
// forward's scope. Until then the tensors that its replay starts from stay on the device.
//
// A forward with other shapes (other_forwards.h) uses the spans as long as its operators match.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "real/api/other_forwards.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/hooks.h"

namespace ferry::real {

// The spans of a plan, and how the last forward ended. Thread-safe.
class PlannedSpans {
 public:
  PlannedSpans(std::vector<PlanSpan> spans, std::shared_ptr<OtherForwards> others)
      : spans_(std::move(spans)), others_(std::move(others)) {}

  // The spans of one forward on the calling thread.
  class Forward;

  // Begins a new forward. Throws PlanMismatch if the last forward ended before all of its spans.
  void begin_run();

 private:
  void ended_wrong(std::exception_ptr error);

  const std::vector<PlanSpan> spans_;
  const std::shared_ptr<OtherForwards> others_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

// While it lives, it sees the ops of the calling thread. An op that does not match the plan throws
// PlanMismatch.
class PlannedSpans::Forward {
 public:
  // Called in the catch block if an op throws. It may throw another exception instead.
  using Rethrow = void (*)();

  // `around` are the hooks on which it pushes its own.
  Forward(std::shared_ptr<PlannedSpans> spans, HookStack<at::Tensor> around, Rethrow rethrow);
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;
  ~Forward() = default;

  const std::shared_ptr<Hooks<at::Tensor>>& hooks() const { return hooks_; }
  // Ends the forward, if no exception did. Returns false if it did not match the plan at its end;
  // the next begin_run then throws.
  bool end() noexcept;

 private:
  class Run;
  class Ops;
  class Router;

  const std::shared_ptr<PlannedSpans> spans_;
  const std::shared_ptr<Run> run_;
  const std::shared_ptr<Hooks<at::Tensor>> hooks_;
  const CheckpointScope ops_;
};

}  // namespace ferry::real
