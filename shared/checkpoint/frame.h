// The saved tensors of one call of a checkpointed function. A Holder stands for each of them, and a
// recompute makes the results for the holders.
//
// The first holder that is unpacked in a graph task recomputes the function (call.h). The tensors
// saved in this recompute become the results of the holders, in the order of packing, and belong to
// this task only (runs.h). A result is freed when it is unpacked, when autograd drops its holder,
// and at the latest when its task ends.
//
// Holders own the frame, and the frame owns the call. The frame knows its holders only by number,
// so there is no cycle. No lock is held while user code runs or a tensor is dropped.
//
// Source: torch/utils/checkpoint.py, NOTE [ Nestable Checkpoint ].
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/call.h"
#include "shared/checkpoint/errors.h"
#include "shared/checkpoint/hooks.h"
#include "shared/checkpoint/kept_tensor.h"
#include "shared/checkpoint/runs.h"
#include "shared/checkpoint/state.h"
#include "shared/seam/autograd.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <ComputeDevice D, RecomputingAutograd A>
class CheckpointFrame final : public std::enable_shared_from_this<CheckpointFrame<D, A>> {
 public:
  using Tensor = typename D::Tensor;
  using Stream = typename D::Stream;
  using Value = typename A::Value;
  using State = CheckpointState<D, A>;
  using Function = typename CheckpointCall<D, A>::Function;

  // The constructor saves the inputs under the hooks that are installed, so construct the frame
  // before you push its own.
  CheckpointFrame(std::shared_ptr<State> state, const std::vector<Value>& inputs, Function function,
                  CoreCheckpointOptions options, CheckpointContexts contexts,
                  std::shared_ptr<const SegmentPlan> plan)
      : state_(std::move(state)),
        call_(state_, inputs, std::move(function), std::move(options), std::move(contexts),
              std::move(plan)) {}
  CheckpointFrame(const CheckpointFrame&) = delete;
  CheckpointFrame& operator=(const CheckpointFrame&) = delete;
  ~CheckpointFrame() = default;

  // Returns the pair of hooks that sees each tensor that forward saves.
  std::shared_ptr<Hooks<Tensor>> forward_hooks() {
    return std::make_shared<ForwardHooks>(this->shared_from_this());
  }

  // Returns the context for forward, given the caller's context `now`. Call it once.
  std::shared_ptr<const CheckpointContext> begin(CheckpointContext now) {
    return call_.begin(std::move(now));
  }

  // Call it once, after forward succeeded. In debug mode `ops` lists the ops that forward ran.
  void complete(std::vector<std::string> ops) {
    call_.complete();
    const SegmentPlan* const plan = call_.plan();
    const std::lock_guard lock(mutex_);
    invariant(!complete_, "a segment's forward ends once");
    if (plan && plan->packs && *plan->packs != slots_.size()) {
      throw make_error<Tensor>(SegmentMismatch(slots_.size(), *plan->packs));
    }
    forward_ops_ = std::move(ops);
    complete_ = true;
  }

 private:
  using Runs = RecomputeRuns<D>;
  using Run = typename Runs::Run;
  using RunRef = typename Runs::RunRef;
  using Result = typename Run::Result;
  using Key = RecomputeKey;

  // The fate of each tensor that forward saved, by ordinal of its pack.
  enum class Packed : std::uint8_t { kHeld, kDropped, kElsewhere };
  struct Slot {
    Packed packed = Packed::kElsewhere;
    std::optional<typename D::Metadata> metadata;
  };

  class Holder final : public Saved<Tensor> {
   public:
    Holder(std::shared_ptr<CheckpointFrame> frame, std::size_t ordinal)
        : frame_(std::move(frame)), ordinal_(ordinal) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() override { frame_->forget(ordinal_); }
    Tensor unpack() override { return frame_->unpack(ordinal_); }

   private:
    std::shared_ptr<CheckpointFrame> frame_;
    std::size_t ordinal_;
  };

  class ForwardHooks final : public CheckpointPair<Tensor> {
   public:
    explicit ForwardHooks(std::shared_ptr<CheckpointFrame> frame) : frame_(std::move(frame)) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      return frame_->pack(tensor);
    }

   private:
    std::shared_ptr<CheckpointFrame> frame_;
  };

  class RecomputeHooks final : public Hooks<Tensor> {
   public:
    RecomputeHooks(std::shared_ptr<CheckpointFrame> frame, RunRef run)
        : frame_(std::move(frame)), run_(std::move(run)) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      return frame_->pack_again(*run_, tensor);
    }

   private:
    std::shared_ptr<CheckpointFrame> frame_;
    RunRef run_;
  };

  const CheckpointRules& rules() const { return state_->rules; }

  SavedChoice choice(std::size_t ordinal) const {
    if (call_.recomputing() && rules().chooses_once()) return SavedChoice::kRecompute;
    const std::vector<SavedChoice>& choices = call_.options().choices;
    return ordinal < choices.size() ? choices[ordinal] : SavedChoice::kRecompute;
  }

  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) {
    D& device = state_->device;
    std::size_t ordinal = 0;
    {
      const std::lock_guard lock(mutex_);
      ordinal = slots_.size();
      slots_.emplace_back();
    }
    const SavedChoice chosen = choice(ordinal);
    if (chosen == SavedChoice::kRecompute) {
      Slot slot{Packed::kHeld, std::nullopt};
      if (call_.options().determinism_check == DeterminismCheck::kDefault) {
        slot.metadata = device.metadata(tensor);
      }
      {
        const std::lock_guard lock(mutex_);
        needed_ = std::max(needed_, ordinal + 1);
        slots_[ordinal] = std::move(slot);
      }
      state_->count(&CheckpointStatistics::saved);
      return std::make_unique<Holder>(this->shared_from_this(), ordinal);
    }
    if (chosen == SavedChoice::kOffload) {
      if (auto saved = around_checkpoints(call_.around()).pack(tensor)) {
        state_->count(&CheckpointStatistics::passed_on);
        return saved;
      }
    }
    state_->count(&CheckpointStatistics::kept);
    return std::make_unique<KeptTensor<D>>(device, device.detach(tensor));
  }

  // Packs in a recompute. It throws StopRecomputation once every needed tensor exists.
  std::unique_ptr<Saved<Tensor>> pack_again(Run& run, const Tensor& tensor) {
    D& device = state_->device;
    Tensor detached = device.detach(tensor);
    const Stream stream = device.current_stream();
    bool all = false;
    {
      const std::lock_guard lock(mutex_);
      if (run.stopped) throw make_error<Tensor>(CheckpointError(checkpoint_text::kSwallowed));
      const std::size_t ordinal = run.packed++;
      if (ordinal < run.results.size()) {
        const Slot& slot = slots_[ordinal];
        if (slot.metadata && (slot.packed == Packed::kHeld || !rules().skips_dead())) {
          compare(run, ordinal, *slot.metadata, device.metadata(tensor));
        }
        if (slot.packed == Packed::kHeld || !rules().keeps_chosen()) {
          run.put(ordinal, {KeptTensor<D>(device, detached), stream});
        }
      } else if (complete_ || !rules().serves_unfinished()) {
        throw make_error<Tensor>(CheckpointError(checkpoint_text::more()));
      }
      run.note(stream);
      std::size_t needed = std::min(needed_, run.results.size());
      if (!rules().stops_at_last()) --needed;
      all = call_.options().early_stop && rules().stops_early() && run.packed >= needed;
    }
    if (all) stop(run);
    return std::make_unique<KeptTensor<D>>(device, std::move(detached));
  }

  // Makes the waits of join(), then marks the run as stopped. So an error in join() does not count
  // as a stop.
  [[noreturn]] void stop(Run& run) {
    join(run);
    {
      const std::lock_guard lock(mutex_);
      run.stopped = true;
    }
    throw StopRecomputation(&run);
  }

  // A function makes its own stream wait for other streams that used a tensor before it drops the
  // tensor. An early stop leaves the function before that wait, so the wait is made here. Streams
  // on which the function saves nothing are not known, and are not covered.
  void join(const Run& run) {
    D& device = state_->device;
    for (const Stream& stream : run.streams) {
      if (stream == call_.stream()) continue;
      device.wait(Step::kUnpackRecomputed, call_.stream(),
                  device.record(Step::kRecomputed, stream));
    }
  }

  void compare(Run& run, std::size_t ordinal, const typename D::Metadata& saved,
               const typename D::Metadata& recomputed) {
    if (saved == recomputed) return;
    run.differences.push_back(
        {ordinal, state_->device.describe(saved), state_->device.describe(recomputed)});
  }

  Tensor unpack(std::size_t ordinal) {
    const std::shared_ptr<ExecGroup> group =
        rules().keys_by_group() ? checkpoint_context(state_->autograd.hooks()).group : nullptr;
    const Key key = this_key(group.get());
    RunRef run = find(key);
    if (!run || ordinal >= run->results.size()) {
      run = recompute();
      if (key.kind != Key::Kind::kOutside || !rules().repeats_outside()) {
        publish(key, run, group.get());
      }
    }
    std::optional<Result> result = take(*run, ordinal);
    if (!result && !rules().refuses_twice()) {
      run = recompute();
      result = take(*run, ordinal);
    }
    if (!result)
      throw make_error<Tensor>(CheckpointError(checkpoint_text::twice(group != nullptr)));
    Tensor tensor = result->tensor.unpack();
    hand_over(tensor, result->stream);
    return tensor;
  }

  Key this_key(const ExecGroup* group) const {
    using Kind = typename Key::Kind;
    const GraphTaskId task = state_->autograd.graph_task();
    const ThreadId thread = rules().keys_by_thread() ? state_->autograd.thread() : ThreadId{};
    if (group) return {Kind::kGroup, group->id(), thread};
    if (task == GraphTaskId::kNone) return {Kind::kOutside, 0, thread};
    const bool by_task = rules().keys_by_task();
    return {Kind::kTask, by_task ? static_cast<std::int64_t>(task) : 0, thread};
  }

  RunRef find(const Key& key) {
    const std::lock_guard lock(mutex_);
    return runs_.find(key);
  }

  // From now on `run` serves its task. It replaces an older run if forward went on after a backward
  // inside it. `run` drops what was unpacked from the old run: nothing is handed out twice.
  void publish(const Key& key, const RunRef& run, ExecGroup* group) {
    if (replace(key, run)) return;
    if (rules().frees_at_end()) {
      const auto drop = [weak = this->weak_from_this(), key] {
        if (const auto frame = weak.lock()) frame->drop(key);
      };
      if (group) {
        group->at_end(this->weak_from_this(), drop);
      } else if (key.kind == Key::Kind::kTask) {
        state_->autograd.after_task(drop);
      }
    }
    const std::lock_guard lock(mutex_);
    runs_.add(key, run);
  }

  // Returns true if there was a run to replace.
  bool replace(const Key& key, const RunRef& run) {
    typename Runs::Dropped dropped;
    const std::lock_guard lock(mutex_);
    return runs_.replace(key, run, dropped);
  }

  void drop(const Key& key) noexcept {
    RunRef dropped;
    const std::lock_guard lock(mutex_);
    runs_.drop(key, dropped);
  }

  // Called when autograd drops the holder.
  void forget(std::size_t ordinal) noexcept {
    typename Runs::Dropped dropped;
    const std::lock_guard lock(mutex_);
    slots_[ordinal].packed = Packed::kDropped;
    if (rules().frees_unneeded()) runs_.forget(ordinal, dropped);
  }

  std::optional<Result> take(Run& run, std::size_t ordinal) {
    const std::lock_guard lock(mutex_);
    if (!rules().frees_unpacked()) return run.results[ordinal];
    return run.take(ordinal);
  }

  // Makes the unpacking stream wait for the recompute.
  void hand_over(const Tensor& tensor, const Stream& from) {
    D& device = state_->device;
    const Stream now = device.current_stream();
    if (now == from || !device.on_device(tensor)) return;
    device.wait(Step::kUnpackRecomputed, now, device.record(Step::kRecomputed, from));
    device.record_use(Step::kRecomputedInUse, device.storage(tensor), now);
  }

  // Recomputes the function and returns the results.
  RunRef recompute() {
    RunRef run;
    {
      const std::lock_guard lock(mutex_);
      run = std::make_shared<Run>(slots_.size());
    }
    state_->count(&CheckpointStatistics::recomputes);
    call_.log_recompute();
    std::optional<typename A::OpLog> log;
    try {
      const typename D::StreamScope on(state_->device, rules().returns_to_stream()
                                                           ? call_.stream()
                                                           : state_->device.current_stream());
      run_again(run, log);
      if (rules().checks_recompute()) check(*run);
    } catch (const CheckpointError& error) {
      if (!log) throw;
      throw make_error<Tensor>(
          CheckpointError(checkpoint_text::debug(error.what(), forward_ops_, log->names())));
    }
    return run;
  }

  void run_again(const RunRef& run, std::optional<typename A::OpLog>& log) {
    auto hooks = std::make_shared<RecomputeHooks>(this->shared_from_this(), run);
    call_.again(std::move(hooks), log, [&](const auto& function) {
      try {
        function();
      } catch (const StopRecomputation& stop) {
        if (!stop.is_for(run.get())) throw;
        state_->count(&CheckpointStatistics::stopped_early);
        return;
      } catch (const CheckpointError&) {
        throw;
      } catch (...) {
        // An interpreter inside the function, such as TorchScript's, may have caught
        // StopRecomputation and thrown an error of its own.
        if (!run->stopped) throw;
        state_->count(&CheckpointStatistics::stopped_early);
        return;
      }
      if (run->stopped) throw make_error<Tensor>(CheckpointError(checkpoint_text::kSwallowed));
    });
  }

  void check(const Run& run) {
    std::size_t saved = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!complete_) return;
      saved = slots_.size();
    }
    if (!run.stopped && run.packed != saved) {
      throw make_error<Tensor>(CheckpointError(checkpoint_text::fewer(saved, run.packed)));
    }
    if (!run.differences.empty()) {
      throw make_error<Tensor>(CheckpointError(checkpoint_text::different(run.differences)));
    }
  }

  const std::shared_ptr<State> state_;
  CheckpointCall<D, A> call_;
  std::vector<std::string> forward_ops_;  // filled in debug mode

  typename D::Mutex mutex_;
  std::vector<Slot> slots_;
  std::size_t needed_ = 0;  // number of packs up to the last one that is recomputed
  bool complete_ = false;
  Runs runs_;
};

}  // namespace ferry
