// The saved tensors of one span. Those that its calls made are not kept: backward runs these calls
// again.
//
// A *span* is a range of operator calls. While it lives, its world reports each call (`ran`), and
// its hooks see each saved tensor. When a graph task unpacks the first of them, the recorded calls
// that any of them needs are replayed once, in order. A result is freed when it is unpacked, when
// autograd drops its saved tensor, and at the latest when its task ends. No user function runs, so
// nothing has to be stopped early, and nothing can differ.
//
// At the end of the span, calls that no saved tensor needs are forgotten. The hooks around the span
// then pack the outside arguments of the other calls, like the inputs of a checkpoint.
//
// Unpacking throws ModifiedInPlace if the saved tensor was written after its save, or if a call
// must be replayed whose outside argument was written since. A tensor that the span made may be
// written after the span, because a replay makes another storage.
//
// Holders own the span, and the span knows them by number, so there is no cycle. No lock is held
// while an operator runs or a tensor is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/hooks.h"
#include "shared/checkpoint/kept_tensor.h"
#include "shared/checkpoint/runs.h"
#include "shared/replay/recorder.h"
#include "shared/replay/recording.h"
#include "shared/replay/remade.h"
#include "shared/replay/replay_state.h"
#include "shared/seam/autograd.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

namespace ferry {

template <ReplayDevice D, RecomputingAutograd A>
class ReplaySpan final : public std::enable_shared_from_this<ReplaySpan<D, A>> {
 public:
  using Tensor = typename D::Tensor;
  using Stream = typename D::Stream;
  using State = ReplayState<D, A>;

  // `around` are the hooks on which the span pushes its own.
  ReplaySpan(std::shared_ptr<State> state, HookStack<Tensor> around)
      : state_(std::move(state)),
        life_(*state_),
        thread_(state_->autograd.thread()),
        task_(state_->autograd.graph_task()),
        stream_(state_->device.current_stream()),
        around_(without_context(std::move(around))),
        recorder_(state_->device) {}
  ReplaySpan(const ReplaySpan&) = delete;
  ReplaySpan& operator=(const ReplaySpan&) = delete;
  ~ReplaySpan() = default;

  // Returns the pair of hooks that sees each tensor saved in the span.
  std::shared_ptr<Hooks<Tensor>> hooks() {
    return std::make_shared<SpanHooks>(this->shared_from_this());
  }

  // Reports a call that has run on the calling thread.
  void ran(SeenCall<D> seen) {
    D& device = state_->device;
    if (state_->autograd.thread() != thread_ || state_->autograd.graph_task() != task_ ||
        !(device.current_stream() == stream_)) {
      seen.run = nullptr;
    }
    bool recorded = false;
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      recorded = recorder_.ran(recording_, seen);
    }
    if (recorded) state_->count(&ReplayStatistics::calls);
  }

  // Call it once, after the last call of the span, when its hooks are popped. If a hook around
  // throws, the error leaves this call, and the span keeps its arguments where they were.
  //
  // The hooks around get the arguments that any saved tensor needs, even one that autograd has
  // dropped by now. A recompute of an outer checkpoint may drop others, and must give as many to
  // the hooks.
  void end() {
    std::vector<typename ReplayRecording<D>::CallRef> dropped;
    std::vector<std::shared_ptr<HeldArgument<D>>> held;
    HookStack<Tensor> around;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      around = std::exchange(around_, {});
      recorder_.end();
      held = arguments(recording_.needed(targets(/*alive=*/false), state_->rules));
    }
    for (const auto& argument : held) {
      if (!state_->rules.refuses_late()) saved(*argument)->unpack();
      pass(*argument, around);
    }
    std::vector<std::size_t> needed;
    {
      const std::lock_guard lock(mutex_);
      needed = recording_.needed(targets(/*alive=*/true), state_->rules);
      dropped = recording_.keep_only(needed);
    }
    state_->count(&ReplayStatistics::calls_left, static_cast<std::int64_t>(needed.size()));
    state_->count(&ReplayStatistics::held, static_cast<std::int64_t>(held.size()));
  }

 private:
  using Call = ReplayCall<D>;
  using Runs = RecomputeRuns<D>;
  using Run = typename Runs::Run;
  using RunRef = typename Runs::RunRef;
  using Result = typename Run::Result;
  using Key = RecomputeKey;

  // A saved tensor that the span made.
  struct Pack {
    typename Call::Window window;
    std::size_t position;  // the number of calls before it
    typename D::Version version;
    std::uint64_t version_at_save;
    bool alive = true;
  };

  class Holder final : public Saved<Tensor> {
   public:
    Holder(std::shared_ptr<ReplaySpan> span, std::size_t ordinal)
        : span_(std::move(span)), ordinal_(ordinal) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() override { span_->forget(ordinal_); }
    Tensor unpack() override { return span_->unpack(ordinal_); }

   private:
    std::shared_ptr<ReplaySpan> span_;
    std::size_t ordinal_;
  };

  class SpanHooks final : public RecomputingPair<Tensor> {
   public:
    explicit SpanHooks(std::shared_ptr<ReplaySpan> span) : span_(std::move(span)) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      return span_->pack(tensor);
    }

   private:
    std::shared_ptr<ReplaySpan> span_;
  };

  // Removes the context: a span that held a group would keep alive what the group recomputed.
  static HookStack<Tensor> without_context(HookStack<Tensor> stack) {
    stack.checkpoint = nullptr;
    return stack;
  }

  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) {
    D& device = state_->device;
    std::optional<std::size_t> ordinal;
    HookStack<Tensor> around;
    {
      const std::lock_guard lock(mutex_);
      around = around_;
      if (auto window = recorder_.find(tensor)) {
        typename D::Version version = device.version(tensor);
        const std::uint64_t now = device.read(version);
        ordinal = packs_.size();
        packs_.push_back({std::move(*window), recording_.position(), std::move(version), now});
      }
    }
    state_->count(ordinal ? &ReplayStatistics::saved : &ReplayStatistics::passed_on);
    if (ordinal) return std::make_unique<Holder>(this->shared_from_this(), *ordinal);
    if (auto saved = around.pack(tensor)) return saved;
    return std::make_unique<KeptTensor<D>>(device, device.detach(tensor));
  }

  // Gives a held argument to the hooks around.
  void pass(HeldArgument<D>& argument, const HookStack<Tensor>& around) {
    std::optional<Tensor> tensor;
    {
      const std::lock_guard lock(mutex_);
      tensor = argument.passing();
    }
    if (!tensor) return;
    std::shared_ptr<Saved<Tensor>> packed = around.pack(*tensor);
    std::pair<std::optional<Tensor>, std::shared_ptr<Saved<Tensor>>> dropped;
    const std::lock_guard lock(mutex_);
    dropped = argument.pass(std::move(packed));
  }

  // Call these three under the lock.
  std::vector<std::size_t> every_alive() const {
    std::vector<std::size_t> alive;
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      if (packs_[i].alive) alive.push_back(i);
    }
    return alive;
  }
  std::vector<ReplayTarget> targets(bool alive) const {
    std::vector<ReplayTarget> targets;
    for (const Pack& pack : packs_) {
      if (!alive || pack.alive) targets.push_back({pack.window.storage, pack.position});
    }
    return targets;
  }
  std::vector<std::shared_ptr<HeldArgument<D>>> arguments(
      const std::vector<std::size_t>& calls) const {
    std::vector<std::shared_ptr<HeldArgument<D>>> held;
    for (const std::size_t number : calls) {
      for (const auto& argument : recording_.call(number)->arguments) {
        if (const auto* each = std::get_if<typename Call::Held>(&argument)) held.push_back(*each);
      }
    }
    return held;
  }

  // Called when autograd drops the holder.
  void forget(std::size_t ordinal) noexcept {
    typename Runs::Dropped dropped;
    const std::lock_guard lock(mutex_);
    packs_[ordinal].alive = false;
    runs_.forget(ordinal, dropped);
  }

  Tensor unpack(std::size_t ordinal) {
    check_version(ordinal);
    const Key key = this_key();
    RunRef run = find(key);
    if (!run && key.kind == Key::Kind::kTask) {
      run = replay(std::nullopt);
      publish(key, run);
    }
    std::optional<Result> result = run ? take(*run, ordinal) : std::nullopt;
    if (!result)
      result = take(*replay(ordinal), ordinal);  // second unpack in this task, or no task
    Tensor tensor = result->tensor.unpack();
    hand_over(tensor, result->stream);
    return tensor;
  }

  void check_version(std::size_t ordinal) {
    D& device = state_->device;
    const std::lock_guard lock(mutex_);
    const Pack& pack = packs_[ordinal];
    const std::uint64_t now = device.read(pack.version);
    if (now != pack.version_at_save && state_->rules.checks_version()) {
      throw make_error<Tensor>(ModifiedInPlace(now, pack.version_at_save));
    }
  }

  Key this_key() const {
    using Kind = typename Key::Kind;
    const GraphTaskId task = state_->autograd.graph_task();
    const ThreadId thread = state_->autograd.thread();
    if (task == GraphTaskId::kNone) return {Kind::kOutside, 0, thread};
    return {Kind::kTask, static_cast<std::int64_t>(task), thread};
  }

  RunRef find(const Key& key) {
    const std::lock_guard lock(mutex_);
    return runs_.find(key);
  }

  // `run` now serves its task.
  void publish(const Key& key, const RunRef& run) {
    if (state_->rules.frees_at_end()) {
      state_->autograd.after_task([weak = this->weak_from_this(), key] {
        if (const auto span = weak.lock()) span->drop(key);
      });
    }
    const std::lock_guard lock(mutex_);
    runs_.add(key, run);
  }

  void drop(const Key& key) noexcept {
    RunRef dropped;
    const std::lock_guard lock(mutex_);
    runs_.drop(key, dropped);
  }

  std::optional<Result> take(Run& run, std::size_t ordinal) {
    const std::lock_guard lock(mutex_);
    if (ordinal >= run.results.size()) return std::nullopt;  // forward went on since
    if (!state_->rules.frees_unpacked()) return run.results[ordinal];
    return run.take(ordinal);
  }

  // Makes the unpacking stream wait for the replay.
  void hand_over(const Tensor& tensor, const Stream& from) {
    D& device = state_->device;
    const Stream now = device.current_stream();
    if (now == from || !device.on_device(tensor)) return;
    device.wait(Step::kUnpackRecomputed, now, device.record(Step::kRecomputed, from));
    device.record_use(Step::kRecomputedInUse, device.storage(tensor), now);
  }

  // The input of a replay. It is a copy, because a backward inside forward may replay while forward
  // goes on recording.
  struct Work {
    RunRef run;
    std::vector<std::size_t> ordinals;
    std::vector<Pack> packs;  // those of `ordinals`
    std::vector<typename ReplayRecording<D>::CallRef> calls;
    std::vector<std::vector<std::size_t>> drops;  // by call: the storages that no later call needs
    std::vector<std::int64_t> bytes;              // by storage
  };

  // Prepares the replay of one saved tensor, or of all that are alive if `ordinal` is none.
  Work work(std::optional<std::size_t> ordinal) {
    Work work;
    const std::lock_guard lock(mutex_);
    work.run = std::make_shared<Run>(packs_.size());
    work.ordinals = ordinal ? std::vector{*ordinal} : every_alive();
    std::vector<ReplayTarget> targets;
    for (const std::size_t each : work.ordinals) {
      work.packs.push_back(packs_[each]);
      targets.push_back({packs_[each].window.storage, packs_[each].position});
    }
    for (std::size_t i = 0; i < recording_.storages(); ++i) {
      work.bytes.push_back(recording_.bytes(i));
    }
    for (const std::size_t number : recording_.needed(targets, state_->rules)) {
      work.calls.push_back(recording_.call(number));
    }
    work.drops = drops(work);
    return work;
  }

  static std::vector<std::vector<std::size_t>> drops(const Work& work) {
    std::vector<std::optional<std::size_t>> last_use(work.bytes.size());
    for (std::size_t i = 0; i < work.calls.size(); ++i) {
      for (const auto& made : work.calls[i]->makes) last_use[made.storage] = i;
      for (const auto& argument : work.calls[i]->arguments) {
        const auto* const window = std::get_if<typename Call::Window>(&argument);
        if (window) last_use[window->storage] = i;
      }
    }
    for (const Pack& pack : work.packs) last_use[pack.window.storage].reset();
    std::vector<std::vector<std::size_t>> drops(work.calls.size());
    for (std::size_t storage = 0; storage < last_use.size(); ++storage) {
      if (last_use[storage]) drops[*last_use[storage]].push_back(storage);
    }
    return drops;
  }

  // Replays the calls and returns the results.
  RunRef replay(std::optional<std::size_t> ordinal) {
    Work work = this->work(ordinal);
    state_->count(&ReplayStatistics::replays);
    state_->count(&ReplayStatistics::calls_replayed, static_cast<std::int64_t>(work.calls.size()));
    D& device = state_->device;
    const typename D::StreamScope on(device, stream_);
    RemadeStorages<Tensor> made(work.bytes.size());
    for (std::size_t i = 0; i < work.calls.size(); ++i) run_call(work, i, made);
    for (std::size_t i = 0; i < work.ordinals.size(); ++i) {
      const Pack& pack = work.packs[i];
      Tensor tensor = window(made.at(pack.window.storage), pack.window.layout, pack.version);
      work.run->put(work.ordinals[i],
                    {KeptTensor<D>(device, std::move(tensor)), device.current_stream()});
    }
    return work.run;
  }

  Tensor window(const Tensor& on, const typename D::Layout& layout,
                const typename D::Version& version) {
    D& device = state_->device;
    return device.restore(device.storage(on), layout, 0, version);
  }

  void run_call(const Work& work, std::size_t number, RemadeStorages<Tensor>& made) {
    D& device = state_->device;
    const Call& call = *work.calls[number];
    std::vector<Tensor> arguments;
    for (const auto& argument : call.arguments) {
      if (const auto* on = std::get_if<typename Call::Window>(&argument)) {
        const Tensor& base = made.at(on->storage);
        arguments.push_back(window(base, on->layout, device.version(base)));
      } else {
        arguments.push_back(saved(*std::get<typename Call::Held>(argument))->unpack());
      }
    }
    const std::vector<Tensor> outputs = call.run(arguments);
    for (const auto& output : call.makes) {
      const std::int64_t bytes = output.output < outputs.size()
                                     ? device.bytes(device.storage(outputs[output.output]))
                                     : -1;
      if (bytes != work.bytes[output.storage]) {
        throw make_error<Tensor>(ReplayError(
            "ferry::replay: an operator that ran again made a storage of " + std::to_string(bytes) +
            " bytes, and in forward one of " + std::to_string(work.bytes[output.storage])));
      }
      made.put(output.storage, outputs[output.output]);
    }
    for (const std::size_t storage : work.drops[number]) made.drop(storage);
  }
  std::shared_ptr<Saved<Tensor>> saved(const HeldArgument<D>& argument) {
    const std::lock_guard lock(mutex_);
    return argument.saved();
  }

  const std::shared_ptr<State> state_;
  const typename State::Life life_;
  const ThreadId thread_;
  const GraphTaskId task_;  // that of a recompute around the span
  const Stream stream_;
  HookStack<Tensor> around_;  // until end()

  typename D::Mutex mutex_;
  SpanRecorder<D> recorder_;
  ReplayRecording<D> recording_;
  std::vector<Pack> packs_;  // by ordinal
  bool ended_ = false;
  Runs runs_;
};

}  // namespace ferry
