// Reloads, prefetch, and the backward stash (the way back from the host).
//
//   compute   ... ──● ready                       ┌─ consume ── node reads x
//                   └── after ready ─┐            │
//   h2d       ... ── after offload ──▼ H2D(x) ──● reloaded
//
// By default a target comes from the consumer's pool, like any tensor of the consumer's stream. The
// copy then waits for the work that this stream has so far, and the block needs no release.
//
// With the copy stream's pool (TRL's published way) the copy does not wait, but the release does:
//
//   compute   node reads x ──● node done          (or, where x escaped the node: record_use)
//   h2d       ...            └── release after node ── x's block may be reused
//
// The release comes one node later, so that the copy stream does not wait for the node that it
// feeds. At the end of a graph task, successful or not, everything that is left is released.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/offload/context.h"
#include "shared/offload/tracker.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <Device D>
class Inbound {
 public:
  using ParcelRef = std::shared_ptr<Parcel<D>>;
  using TargetRef = std::shared_ptr<Target<D>>;
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;
  using Role = typename Target<D>::Role;

  Inbound(Context<D>& context, Tracker<D>& tracker) : context_(context), tracker_(tracker) {}

  // `sequence` is the number of the next pack. Returns true if the caller must still arrange that
  // after_task is called at the end of the task.
  bool begin_task(GraphTaskId task, std::uint64_t sequence) {
    invariant(task != GraphTaskId::kNone, "outside of backward no task begins");
    const auto [state, fresh] = tasks_.try_emplace(task);
    if (fresh) state->second.began = sequence;
    return !std::exchange(state->second.announced, true);
  }

  // Call this if after_task cannot be called. Other threads may be in the task already: what is
  // kept until its end is released now, and what its nodes use when they end.
  void cancel_task(GraphTaskId task, Bin<D>& bin) noexcept {
    const auto found = tasks_.find(task);
    if (found == tasks_.end()) return;
    Task& state = found->second;
    state.announced = false;
    for (const auto& entry : std::exchange(state.left, {})) {
      if (const ParcelRef parcel = entry.lock()) let_go(*parcel, task, bin);
    }
    for (const TargetRef& target : std::exchange(state.due, {})) release(*target, bin);
    if (state.open.empty()) tasks_.erase(found);
  }

  // Returns a reloaded storage of the parcel that `consumer` may use: an existing or a new one.
  TargetRef bring(Parcel<D>& parcel, const Stream& consumer, Bin<D>& bin) {
    if (parcel.target) {
      ++context_.statistics.target_hits;
    } else {
      parcel.target = reload(parcel, consumer, bin);
    }
    invariant(parcel.target->bytes == parcel.extent.bytes(),
              "a target has the bytes that its parcel sent", Step::kReload);
    try {
      consume(*parcel.target, consumer, bin);
    } catch (...) {
      let_go(parcel, GraphTaskId::kNone, bin);
      throw;
    }
    return parcel.target;
  }

  // After the tensor was handed out: keeps the target for other saves of the parcel, or drops it.
  void settle(const ParcelRef& parcel, GraphTaskId task, Bin<D>& bin) {
    invariant(parcel->target != nullptr, "a tensor that is handed out lies on a target",
              Step::kConsume);
    Task* const state = announced(task);
    const bool hold = context_.rules.shares_targets() && state && context_.bounds.hold() > 0 &&
                      parcel->pending(task) > 0;
    if (!hold) {
      let_go(*parcel, task, bin);
      return;
    }
    if (parcel->target->role == Role::kHeld) return;
    parcel->target->large = parcel->target->bytes > context_.bounds.hold();
    set_role(*parcel->target, Role::kHeld);
    holding(*parcel->target).emplace(parcel->sequence, parcel);
    state->left.push_back(parcel);
    if (!context_.rules.bounds_reloads()) return;
    // Backward unpacks in reverse order of packing, so the last packed was held longest.
    const auto let_longest_go = [&](Held& held) {
      const ParcelRef longest = std::prev(held.end())->second.lock();
      invariant(longest != nullptr, "no target is held for a parcel that is dead");
      let_go(*longest, task, bin);
    };
    while (large_.size() > 1) let_longest_go(large_);
    while (held_bytes_ > context_.bounds.hold()) let_longest_go(held_);
  }

  // Starts reloads of earlier packs of the run, in reverse order, within the bounds. `run` and
  // `sequence` are those of the save that the task unpacks.
  void prefetch(std::uint64_t run, std::uint64_t sequence, const Stream& consumer, GraphTaskId task,
                Bin<D>& bin) {
    Task* const state = announced(task);
    if (!state) return;
    std::uint64_t& cursor = state->cursors.try_emplace(run, sequence).first->second;
    cursor = std::min(cursor, sequence);
    const auto packs = static_cast<std::uint64_t>(context_.options.prefetch_tensors);
    while (const ParcelRef parcel = tracker_.older(cursor)) {
      if (parcel->run != run) return;
      if (sequence - parcel->sequence > packs && context_.rules.bounds_reloads()) return;
      if (wants_prefetch(*parcel, task, bin)) {
        const std::int64_t bytes = prefetched_bytes_ + parcel->extent.bytes();
        const bool fits = bytes <= context_.bounds.prefetch();
        if (!fits && context_.rules.bounds_reloads()) return;
        if (!start_prefetch(parcel, consumer, bin)) return;
        state->left.push_back(parcel);
      }
      cursor = parcel->sequence;
    }
  }

  // True if targets must be released after a node. If false, their pool takes them back without
  // that.
  bool needs_release() const { return copy_pool() && context_.rules.holds_target(); }

  // Records that a node of the task got a target. Returns true for the first one of the node: the
  // caller must then arrange that after_node is called at its end.
  bool use(const TargetRef& target, const Stream& consumer, GraphTaskId task, NodeId node) {
    Reader* const reader = target->reader(consumer);
    invariant(reader != nullptr, "a node uses a target that its stream waited for", Step::kConsume);
    ++reader->open;
    const auto [uses, first] = tasks_[task].open.try_emplace(node);
    uses->second.push_back({target, consumer});
    return first;
  }

  void after_node(GraphTaskId task, NodeId node, Bin<D>& bin) {
    const auto state = tasks_.find(task);
    if (state == tasks_.end()) return;
    const auto uses = state->second.open.find(node);
    if (uses == state->second.open.end()) return;
    record_done(uses->second);
    std::vector<TargetRef> due = std::exchange(state->second.due, {});
    const bool late = context_.rules.releases_late() && state->second.announced;
    close(std::move(uses->second), late ? state->second.due : due, bin);
    state->second.open.erase(node);
    for (const TargetRef& target : due) release(*target, bin);
    if (!state->second.announced && state->second.open.empty()) tasks_.erase(state);
  }

  // Releases all targets of the task. If its last node threw, the uses of that node end here.
  void after_task(GraphTaskId task, Bin<D>& bin) noexcept {
    const auto found = tasks_.find(task);
    if (found == tasks_.end() || !context_.rules.lets_go_at_end()) return;
    Task& state = found->second;
    for (auto& [node, uses] : state.open) {
      try {
        record_done(uses);
      } catch (...) {
        for (const Use& use : uses) use.target->reader(use.consumer)->done.reset();
      }
      close(std::move(uses), state.due, bin);
    }
    // The outer task will need saves that were packed before the nested task began.
    Task* outer = found == tasks_.begin() ? nullptr : &std::prev(found)->second;
    for (const auto& entry : state.left) {
      const ParcelRef parcel = entry.lock();
      if (parcel && outer && parcel->sequence < state.began) {
        outer->left.push_back(entry);
      } else if (parcel) {
        let_go(*parcel, task, bin);
      }
    }
    for (const TargetRef& target : state.due) release(*target, bin);
    tasks_.erase(found);
  }

  // The parcel lets go of its target. The target is dropped unless a node uses it.
  void let_go(Parcel<D>& parcel, GraphTaskId task, Bin<D>& bin) noexcept {
    if (!parcel.target) return;
    const TargetRef target = std::exchange(parcel.target, nullptr);
    if (target->role == Role::kHeld) {
      const bool was_there = holding(*target).erase(parcel.sequence) == 1;
      invariant(was_there, "a held target has its place among the held");
    }
    set_role(*target, Role::kInUse);
    context_.log(DecisionKind::kRelease, parcel);
    if (target->in_use()) {
      target->kept_by_parcel = false;
      return;
    }
    Task* const state = announced(task);
    finish(target, state ? &state->due : nullptr, bin);
  }

  // Does the same, but only if the parcel holds the target for further saves.
  void let_go_held(Parcel<D>& parcel, GraphTaskId task, Bin<D>& bin) noexcept {
    if (parcel.target && parcel.target->role == Role::kHeld) let_go(parcel, task, bin);
  }

  bool empty() const {
    return tasks_.empty() && held_.empty() && large_.empty() && prefetched_bytes_ == 0;
  }

 private:
  using Reader = typename Target<D>::Reader;
  using Held = std::map<std::uint64_t, std::weak_ptr<Parcel<D>>>;  // by order of packing

  struct Use {
    TargetRef target;
    Stream consumer;
  };

  // The targets and uses of one graph task.
  struct Task {
    std::map<NodeId, std::vector<Use>> open;         // nodes that are still running
    std::vector<TargetRef> due;                      // to be released after the next node
    std::vector<std::weak_ptr<Parcel<D>>> left;      // parcels prefetched or held for the task
    std::map<std::uint64_t, std::uint64_t> cursors;  // by run: how far prefetch is
    std::uint64_t began = 0;                         // number of the next pack at its begin
    bool announced = false;                          // after_task will be called
  };

  // Returns the task if its after_task will be called, else null.
  Task* announced(GraphTaskId task) {
    const auto found = tasks_.find(task);
    return found != tasks_.end() && found->second.announced ? &found->second : nullptr;
  }

  bool copy_pool() const {
    return context_.options.reload_pool == ReloadPool::kCopyStream &&
           context_.options.copy_streams != CopyStreams::kNone;
  }

  // If a call throws before the copy is enqueued, nothing is left of the reload.
  TargetRef reload(Parcel<D>& parcel, const Stream& consumer, Bin<D>& bin) {
    D& device = context_.device;
    const Stream copies = context_.copy_stream(Lane::kHostToDevice, consumer);
    const Stream pool = copy_pool() ? copies : consumer;
    const std::int64_t bytes = parcel.extent.bytes();
    invariant(parcel.saves > 0, "nothing comes back for a parcel that nobody needs", Step::kReload);
    Storage storage = device.allocate(Step::kReloadAllocate, bytes, pool);
    try {
      if (!(copies == pool)) {
        device.wait(Step::kReloadAfterReady, copies, device.record(Step::kReady, consumer));
      }
      if (!(copies == context_.copy_stream(Lane::kDeviceToHost, parcel.packed_on))) {
        device.wait(Step::kReloadAfterOffload, copies, parcel.offloaded);
      }
      device.reload(Step::kReload, parcel.host, storage, copies);
    } catch (...) {
      bin.drop(std::move(storage));
      throw;
    }
    std::optional<typename D::Event>& end = latest_reload(parcel, copies);
    end.reset();
    try {
      end = device.record(Step::kReloaded, copies);
    } catch (...) {
      context_.protect(storage, copies);
      bin.drop(std::move(storage));
      throw;
    }
    parcel.ever_reloaded = true;
    count_reload(bytes);
    return std::make_shared<Target<D>>(Target<D>{.storage = std::move(storage),
                                                 .reloaded = *end,
                                                 .owner = pool,
                                                 .copies = copies,
                                                 .bytes = bytes,
                                                 .kept_by_parcel = true});
  }

  static std::optional<typename D::Event>& latest_reload(Parcel<D>& parcel, const Stream& copies) {
    for (auto& [stream, event] : parcel.reloads) {
      if (stream == copies) return event;
    }
    return parcel.reloads.emplace_back(copies, std::nullopt).second;
  }

  void count_reload(std::int64_t bytes) {
    OffloadStatistics& statistics = context_.statistics;
    statistics.reloaded_count += 1;
    statistics.reloaded_bytes += bytes;
    statistics.backward_stash_bytes += bytes;
    statistics.backward_stash_peak_bytes =
        std::max(statistics.backward_stash_peak_bytes, statistics.backward_stash_bytes);
  }

  void consume(Target<D>& target, const Stream& consumer, Bin<D>& bin) {
    const bool host = context_.device.is_host(consumer);
    // This thread must wait even if another one has waited already. If its wait fails, the copy may
    // still be writing when the tensor is dropped.
    if (host && !(target.copies == consumer)) {
      bin.waits.push_back(
          {Step::kConsume, consumer, target.reloaded, target.copies, nullptr, target.storage});
    }
    if (target.reader(consumer)) return;  // this reader has waited already
    if (!(target.copies == consumer)) {
      if (!host) context_.device.wait(Step::kConsume, consumer, target.reloaded);
      ++context_.statistics.compute_waits;
    }
    if (!(target.owner == consumer) && !copy_pool()) {
      context_.device.record_use(Step::kEscaped, target.storage, consumer);
    }
    target.readers.push_back({consumer, std::nullopt, 0});
  }

  bool wants_prefetch(const Parcel<D>& parcel, GraphTaskId task, Bin<D>& bin) {
    if (parcel.target || parcel.pending(task) == 0) return false;
    // If the tensor was written since its save, unpacking it is an error, and its copy may be torn.
    if (context_.device.read(parcel.version) != parcel.version_at_pack) return false;
    Storage source = context_.device.lock(parcel.source);
    const bool gone = !context_.device.exists(source);
    if (!gone) bin.drop(std::move(source));
    return gone;
  }

  // A prefetch is only a hint. If it fails, backward goes on; the reload at the use reports the
  // error.
  bool start_prefetch(const ParcelRef& parcel, const Stream& consumer, Bin<D>& bin) {
    try {
      parcel->target = reload(*parcel, consumer, bin);
    } catch (...) {
      return false;
    }
    set_role(*parcel->target, Role::kPrefetched);
    ++context_.statistics.prefetched_count;
    context_.log(DecisionKind::kPrefetch, *parcel);
    return true;
  }

  void set_role(Target<D>& target, Role role) {
    if (target.role == Role::kPrefetched) prefetched_bytes_ -= target.bytes;
    if (target.role == Role::kHeld && !target.large) held_bytes_ -= target.bytes;
    invariant(prefetched_bytes_ >= 0, "no more bytes are taken than were prefetched");
    invariant(held_bytes_ >= 0, "no more bytes are let go than were held");
    target.role = role;
    if (role == Role::kPrefetched) prefetched_bytes_ += target.bytes;
    if (role == Role::kHeld && !target.large) held_bytes_ += target.bytes;
  }

  // A target larger than the bound has a list of its own, for one entry. Its memory was needed a
  // moment ago anyway, and without that list each further save would reload it.
  Held& holding(const Target<D>& target) { return target.large ? large_ : held_; }

  // Records one event per stream, for all targets of a node.
  void record_done(const std::vector<Use>& uses) {
    std::vector<std::pair<Stream, typename D::Event>> ends;
    for (const Use& use : uses) {
      const auto same = [&](const auto& end) { return end.first == use.consumer; };
      auto end = std::find_if(ends.begin(), ends.end(), same);
      if (end == ends.end()) {
        ends.emplace_back(use.consumer, context_.device.record(Step::kNodeDone, use.consumer));
        end = ends.end() - 1;
      }
      Reader* const reader = use.target->reader(use.consumer);
      invariant(reader != nullptr, "a target knows its readers until it is released",
                Step::kNodeDone);
      reader->done = end->second;
    }
  }

  void close(std::vector<Use>&& uses, std::vector<TargetRef>& due, Bin<D>& bin) noexcept {
    for (const Use& use : uses) {
      Reader* const reader = use.target->reader(use.consumer);
      invariant(reader->open > 0, "a node ends its use of a target once", Step::kNodeDone);
      --reader->open;
      // If others still refer to the tensor when the node ends, it will be used later. They may
      // have dropped it again by the time the target is released.
      if (context_.device.use_count(use.target->storage) > 1) use.target->escaped = true;
      if (!use.target->in_use() && !use.target->kept_by_parcel) finish(use.target, &due, bin);
    }
  }

  // Drops a target that the core no longer needs.
  void finish(const TargetRef& target, std::vector<TargetRef>* due, Bin<D>& bin) noexcept {
    if (target->readers.empty()) {
      discard(*target, bin);
    } else if (!needs_release()) {
      drop(*target, bin);
    } else if (context_.rules.counts_escapes() &&
               (target->escaped || context_.device.use_count(target->storage) > 1)) {
      for (Reader& reader : target->readers) reader.done.reset();
      release(*target, bin);
    } else if (due) {
      due->push_back(target);
    } else {
      release(*target, bin);
    }
  }

  // Drops a target that nobody consumed. Only its own copy may still use the block.
  void discard(Target<D>& target, Bin<D>& bin) noexcept {
    context_.statistics.vain_count += 1;
    context_.statistics.vain_bytes += target.bytes;
    if (!(target.copies == target.owner)) {
      try {
        if (context_.device.is_host(target.owner)) {
          bin.waits.push_back({Step::kDiscard, target.owner, target.reloaded, target.copies,
                               nullptr, target.storage});
        } else {
          context_.device.wait(Step::kDiscard, target.owner, target.reloaded);
        }
        ++context_.statistics.compute_waits;
      } catch (...) {
        context_.protect(target.storage, target.copies);
      }
    }
    drop(target, bin);
  }

  // Makes the pool's stream wait for each reader's last node; without an event the pool itself
  // waits.
  void release(Target<D>& target, Bin<D>& bin) noexcept {
    try {
      for (const Reader& reader : target.readers) {
        if (reader.done) {
          context_.device.wait(Step::kReleaseAfterNode, target.owner, *reader.done);
        } else {
          context_.device.record_use(Step::kEscaped, target.storage, reader.stream);
        }
      }
    } catch (...) {
      for (const Reader& reader : target.readers) context_.protect(target.storage, reader.stream);
    }
    drop(target, bin);
  }

  void drop(Target<D>& target, Bin<D>& bin) noexcept {
    invariant(context_.device.exists(target.storage), "a target is dropped once");
    invariant(!target.in_use(), "no target is dropped under a node", Step::kReleaseAfterNode);
    std::int64_t& bytes = context_.statistics.backward_stash_bytes;
    bytes -= target.bytes;
    invariant(bytes >= 0, "no more bytes of targets are dropped than came back");
    bin.drop(std::move(target.storage));
  }

  Context<D>& context_;
  Tracker<D>& tracker_;
  std::map<GraphTaskId, Task> tasks_;
  Held held_;
  Held large_;                   // at most one
  std::int64_t held_bytes_ = 0;  // the bytes of held_
  std::int64_t prefetched_bytes_ = 0;
};

}  // namespace ferry
