#include "real/api/planned_spans.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "real/api/known_op.h"
#include "real/api/replays.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// True if the op is one that plans count: it wrote a tensor or made a storage.
bool counts(const SeenOps::Seen& seen) {
  const auto is_written = [](const auto& argument) { return argument.written; };
  if (std::ranges::any_of(seen.arguments, is_written)) return true;
  return std::ranges::any_of(seen.outputs, [&seen](const at::Tensor& output) {
    return output.has_storage() &&
           std::ranges::none_of(seen.arguments, [&output](const auto& argument) {
             return argument.tensor.has_storage() && argument.tensor.is_alias_of(output);
           });
  });
}

bool is_planned(const std::string& planned, const OperatorHandle& op) {
  return planned.empty() || planned == label(op);
}

}  // namespace

void PlannedSpans::begin_run() {
  std::unique_lock lock(mutex_);
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void PlannedSpans::ended_wrong(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
}

// Runs the spans of one forward. All calls except `pack` are made on the thread of the forward.
class PlannedSpans::Forward::Run {
 public:
  Run(std::shared_ptr<PlannedSpans> plan, HookStack<at::Tensor> around)
      : plan_(std::move(plan)), thread_(TorchAutograd().thread()), around_(std::move(around)) {}

  // True on the thread of the forward, outside a backward.
  bool is_here() const {
    return TorchAutograd().graph_task() == GraphTaskId::kNone &&
           TorchAutograd().thread() == thread_;
  }
  bool is_over() const { return open_.empty() && next_ == plan_->spans_.size(); }

  // Call it when the next op runs, or when its node saves. It ends the spans that the op is not in,
  // and begins those that begin with it.
  void reach() {
    end_spans();
    for (const PlanSpan* next = next_span(); next && next->first == ops_; next = next_span()) {
      const std::shared_ptr<Replays::Span> span = replays().begin(around_next());
      open_.push_back({.plan = next, .span = span, .hooks = span->hooks()});
    }
  }

  template <class RunOutside>
  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack, RunOutside run) {
    if (!traits_of(op).is_seen) return run();
    reach();
    if (is_over()) return run();
    const auto replays_it = [this](const Open& open) { return !keeps(open); };
    const bool again = std::ranges::any_of(open_, replays_it);
    const SeenOps::Seen seen = seen_.run(op, keys, stack, again, run);
    for (const Open& open : open_) {
      SeenOps::Seen told = seen;
      if (keeps(open)) told.run = nullptr;
      SeenOps::tell(*open.span, std::move(told));
    }
    if (!counts(seen)) return;
    // A forward that saves nothing without grad mode is an evaluation. It need not match the plan.
    const bool trains = saved_ || c10::GradMode::is_enabled();
    if (trains && !ends_are_planned(op)) return stop();
    ++ops_;
    nodes_ = at::sequence_number::peek();
  }

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) {
    if (!is_here()) return pack_around(tensor);
    saved_ = true;
    if (ops_ == 0 || at::sequence_number::peek() != nodes_) reach();
    return open_.empty() ? pack_around(tensor) : open_.back().hooks->pack(tensor);
  }

  // A forward that saved nothing does not count.
  void end() {
    end_spans();
    if (!saved_ || is_over()) return;
    plan_->others_->meet("the model does not match the plan: the last forward ran " +
                             std::to_string(ops_) +
                             " operators, and the plan recomputes operators up to " +
                             std::to_string(plan_->spans_.back().last),
                         false);
  }

 private:
  // A span that is running.
  struct Open {
    const PlanSpan* plan;
    std::shared_ptr<Replays::Span> span;
    std::shared_ptr<Hooks<at::Tensor>> hooks;
    std::size_t next = 0;  // the inner span that is next or running
  };

  // Checks the op if a span begins or ends with it. If the op is not the planned one, throws
  // PlanMismatch, or returns false where such forwards are allowed.
  bool ends_are_planned(const OperatorHandle& op) const {
    for (const Open& open : open_) {
      for (const auto& [place, planned] : {std::tie(open.plan->first, open.plan->first_op),
                                           std::tie(open.plan->last, open.plan->last_op)}) {
        if (ops_ != place || is_planned(planned, op)) continue;
        plan_->others_->meet("the model does not match the plan at operator " +
                                 std::to_string(place) + ": the plan has " + planned +
                                 ", the model runs " + label(op),
                             false);
        return false;
      }
    }
    return true;
  }
  // Ends all spans of this forward, and begins no more.
  void stop() {
    while (!open_.empty()) {
      open_.back().span->end();
      open_.pop_back();
    }
    next_ = plan_->spans_.size();
  }
  bool keeps(const Open& open) const { return std::ranges::binary_search(open.plan->keep, ops_); }
  // Returns the next span that may begin, inside the running one if there is one; null if there is
  // none.
  const PlanSpan* next_span() const {
    const std::vector<PlanSpan>& all = open_.empty() ? plan_->spans_ : open_.back().plan->inner;
    const std::size_t next = open_.empty() ? next_ : open_.back().next;
    return next < all.size() ? &all[next] : nullptr;
  }
  // Returns the hooks for the next span: the outer span recomputes what an inner one starts from.
  HookStack<at::Tensor> around_next() const {
    HookStack<at::Tensor> stack = around_;
    if (open_.empty()) return stack;
    using Frame = HookFrame<at::Tensor>;
    stack.top = std::make_shared<const Frame>(Frame{open_.back().hooks, std::move(stack.top)});
    return stack;
  }
  std::unique_ptr<Saved<at::Tensor>> pack_around(const at::Tensor& tensor) const {
    return around_.pack(tensor);
  }
  void end_spans() {
    while (!open_.empty() && ops_ > open_.back().plan->last) {
      const std::shared_ptr<Replays::Span> span = open_.back().span;
      open_.pop_back();
      ++(open_.empty() ? next_ : open_.back().next);
      span->end();
    }
  }

  const std::shared_ptr<PlannedSpans> plan_;
  const ThreadId thread_;
  const HookStack<at::Tensor> around_;
  SeenOps seen_;
  bool saved_ = false;       // saved any tensor
  std::uint64_t ops_ = 0;    // ops so far
  std::uint64_t nodes_ = 0;  // nodes made when the last op had run
  std::size_t next_ = 0;     // the outermost span that is next or running
  std::vector<Open> open_;   // the outermost first
};

class PlannedSpans::Forward::Router final : public Hooks<at::Tensor> {
 public:
  explicit Router(std::shared_ptr<Run> run) : run_(std::move(run)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    return run_->pack(tensor);
  }

 private:
  const std::shared_ptr<Run> run_;
};

class PlannedSpans::Forward::Ops final : public OpScope {
 public:
  Ops(std::shared_ptr<Run> run, Rethrow rethrow) : run_(std::move(run)), rethrow_(rethrow) {}
  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) override {
    const auto run = [&] { run_outside(op, keys, stack); };
    if (!run_->is_here() || run_->is_over()) return run();
    try {
      run_->run(op, keys, stack, run);
    } catch (...) {
      rethrow_();
      throw;
    }
  }

 private:
  const std::shared_ptr<Run> run_;
  const Rethrow rethrow_;
};

PlannedSpans::Forward::Forward(std::shared_ptr<PlannedSpans> spans, HookStack<at::Tensor> around,
                               Rethrow rethrow)
    : spans_(std::move(spans)),
      run_(std::make_shared<Run>(spans_, std::move(around))),
      hooks_(std::make_shared<Router>(run_)),
      ops_(OpScope::enter(std::make_shared<Ops>(run_, rethrow))) {
  install_below_autograd();
}

bool PlannedSpans::Forward::end() noexcept {
  try {
    run_->end();
    return true;
  } catch (...) {
    spans_->ended_wrong(std::current_exception());
    return false;
  }
}

}  // namespace ferry::real
