// Executes the spans of a plan (formats/spans.h). It counts the ops of a forward as the capture
// did, begins and ends each span at its position, and keeps the results that the plan keeps.
//
// An op counts if it writes in place or makes a storage, on the thread of the forward and outside
// any backward. The node of an op is made before the op runs, and may save before and after it.
// LibTorch numbers nodes (the sequence number). If no node was made since an op ran, a saved tensor
// belongs to that op, otherwise to the next one. A span has ended when the next op runs or saves.
//
// If no op follows the last op of a span (backward gets given gradients, so there is no loss), the
// span ends with the forward's scope. Until then the tensors that its replay starts from stay on
// the device.
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

  // Throws PlanMismatch, once, if end() of the last forward returned false.
  void begin_run();

 private:
  void ended_wrong(std::exception_ptr error);

  const std::vector<PlanSpan> spans_;
  const std::shared_ptr<OtherForwards> others_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

// While it lives, it sees the ops of the calling thread. If the first or last op of a span is not
// the planned one, it throws PlanMismatch, or ends all spans where other forwards are allowed
// (other_forwards.h).
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
  // Call it at the end of a forward that threw nothing. Returns false if the forward did not match
  // the plan; the next begin_run then throws.
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
