// Executes the spans of a plan (formats/spans.h): counts the ops of a forward as the capture did,
// begins and ends each span at its places, and keeps what the plan keeps in it.
//
// An op here is one that writes in place or makes a storage, on the forward's thread and in no
// backward. Its node is made before it runs, and saves before it and after it. LibTorch counts
// nodes (the sequence number): so a tensor that is saved when no node was made since an op ran is
// that op's, and else the next one's. A span has ended when one of the two happens for the next op.
//
// Where nothing comes after a span's last op but a backward that is given its gradients, the span
// ends with the forward's scope, and what its replays begin from stays where it is until then.
//
// A forward of another batch (other_forwards.h) has the spans as long as it has their operators.
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

// The spans of a plan, and how its last forward ended. Thread-safe.
class PlannedSpans {
 public:
  PlannedSpans(std::vector<PlanSpan> spans, std::shared_ptr<OtherForwards> others)
      : spans_(std::move(spans)), others_(std::move(others)) {}

  // The spans of one forward of the calling thread.
  class Forward;

  // A new forward begins. Throws what was wrong with the end of the last one: PlanMismatch, if it
  // was before that of its spans.
  void begin_run();

 private:
  void ended_wrong(std::exception_ptr error);

  const std::vector<PlanSpan> spans_;
  const std::shared_ptr<OtherForwards> others_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Sees the ops that the calling thread runs while it lives. Those that are not the plan's throw
// PlanMismatch.
class PlannedSpans::Forward {
 public:
  // Called where an op throws, within the catch block: may throw something else in its place.
  using Rethrow = void (*)();

  // `around`: the hooks that its own are to be pushed on.
  Forward(std::shared_ptr<PlannedSpans> spans, HookStack<at::Tensor> around, Rethrow rethrow);
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;
  ~Forward() = default;

  const std::shared_ptr<Hooks<at::Tensor>>& hooks() const { return hooks_; }
  // The forward is over, and not by an exception. False: its end was wrong, and the next begin_run
  // throws what.
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
