// Implements stash.h. The drawing shows one pack and one unpack on the two streams.
//
//   pack     s0 ──● ── …            unpack   s0         ┌─ node reads d ──● ── …
//   s1            └─ D2H(x) ──●              s1  H2D(d)─┘                 └─ d's block is free
//                     x is kept until s0 has            one node later, or by record_stream
//                     waited, five packs later          where d outlives the node
//
// Saved tensors are numbered, and each number can be unpacked once. One copy stream serves both
// directions, and reloaded tensors are allocated in its pool.
#include "sim/field/stash.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "sim/field/copies.h"
#include "sim/field/held.h"
#include "sim/run/training/adapted.h"

namespace ferry::field {
namespace {

using Id = std::int64_t;
constexpr Id kWindow = 5;  // a distance in numbers, as published
constexpr std::int64_t kBytesMin = 1024;

class Stash {
 public:
  Stash(sim::SimDevice device, sim::SimAutograd autograd, StashPolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        first_stream_(device.current_stream()),
        s1_(device.lane(Lane::kDeviceToHost)) {}

  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    return std::make_unique<Number>(*this, number(tensor));
  }
  void exempt(const sim::Tensor& tensor) {
    exempt_.insert(tensor.get());
    exempt_storages_.insert(tensor->storage.get());
  }
  void begin_forward() {
    leave();
    enter();
    waiting_.reset_peak();
    kept_.reset_peak();
  }
  void finish() {
    leave();
    if (policy_.exit_clears) drop_tracked();
  }
  sim::Resident resident() const { return {waiting_.peak_bytes(), kept_.peak_bytes()}; }
  bool empty() const {
    return tracker_.empty() && stash_.empty() && restored_.empty() && events_.empty();
  }

 private:
  using Key = std::pair<std::uint64_t, DType>;  // address and type of a tensor
  struct Tracked {
    sim::Tensor kept;  // null if it was offloaded
    HostCopy copy;
    std::optional<Key> key;  // if its storage was already on its way: so it stays
  };
  struct Stashed {
    sim::Tensor tensor;
    sim::EventHandle offloaded;
    std::optional<Key> key;
  };

  class Number final : public Saved<sim::Tensor> {
   public:
    Number(Stash& stash, Id id) : stash_(stash), id_(id) {}
    sim::Tensor unpack() override { return stash_.unpack(id_); }

   private:
    Stash& stash_;
    Id id_;
  };

  StreamId s0() {
    return policy_.compute == StashPolicy::Compute::kFirst ? first_stream_
                                                           : device_.current_stream();
  }
  // Returns the stream that waits before a source is dropped.
  StreamId dropping(const sim::Tensor& source) {
    const auto owner = device_.owner(source->storage);
    return policy_.compute == StashPolicy::Compute::kOwner && owner ? *owner : s0();
  }

  bool is_exempt(const sim::Tensor& tensor) const {
    return exempt_.contains(tensor.get()) ||
           (policy_.exempts_storages && exempt_storages_.contains(tensor->storage.get()));
  }

  Id number(const sim::Tensor& tensor) {
    if (next_is_first_) {
      if (!tracker_.empty()) throw std::runtime_error("a forward begins with tensors left over");
      next_is_first_ = false;
      next_unpack_is_first_ = true;
    }
    const Id id = next_id_++;
    if (bytes_of(tensor) < kBytesMin || is_exempt(tensor)) {
      tracker_[id].kept = device_.detach(tensor);
      return id;
    }
    const Key key{sim::range_of(tensor).address, tensor->layout.window->layout.dtype};
    const bool shares = policy_.share != StashPolicy::Share::kNever;
    if (const auto known = keys_.find(key); shares && known != keys_.end()) {
      tracker_[id] = {.kept = device_.detach(tensor), .copy = {}, .key = key};
      known->second = id;
      kept_.add(tensor->storage);
      return id;
    }
    while (!stash_.empty() && stash_.begin()->first <= id - kWindow) drop_oldest();
    send(id, tensor);
    if (shares) {
      keys_[key] = id;
      stash_.at(id).key = key;
    }
    return id;
  }

  // True if the tensor is cloned before its copy. A broadcast view is not: its storage moves.
  static bool is_cloned(const Layout& layout) {
    const bool broadcast =
        std::find(layout.strides.begin(), layout.strides.end(), 0) != layout.strides.end();
    return !broadcast && !is_contiguous(layout);
  }

  sim::Tensor clone(const sim::Tensor& tensor, StreamId stream) {
    const bool gaps = bytes_of(tensor) > tensor_bytes(tensor->layout.window->layout);
    return gaps && policy_.gathers ? gathered(device_, tensor, stream)
                                   : device_.clone(tensor, stream);
  }

  void send(Id id, const sim::Tensor& tensor) {
    using Clone = StashPolicy::Clone;
    const Layout& layout = tensor->layout.window->layout;
    const bool clones = policy_.clone != Clone::kNever && is_cloned(layout);
    sim::Tensor source = device_.detach(tensor);
    if (clones && policy_.clone == Clone::kOnCompute) source = clone(tensor, s0());
    order(device_, Step::kProduced, s0(), Step::kOffloadAfterProducer, s1_);
    if (clones && policy_.clone == Clone::kOnCopyStream) source = clone(tensor, s1_);
    tracker_[id].copy = offload(device_, source, s1_);
    tracker_[id].copy.version = tensor->version;
    if (policy_.hold == StashPolicy::Hold::kRecordUse) {
      return device_.record_use(Step::kAbandon, source->storage, s1_);
    }
    waiting_.add(source->storage);
    stash_[id] = {std::move(source), device_.record(Step::kOffloaded, s1_), std::nullopt};
  }

  void drop_oldest() {
    const auto oldest = stash_.begin();
    device_.wait(Step::kEvict, dropping(oldest->second.tensor), oldest->second.offloaded);
    forget(oldest->second.key, oldest->first);
    unstash(oldest);
  }
  // Forgets a key together with the last number that was given for its storage.
  void forget(const std::optional<Key>& key, Id id) {
    if (!key || policy_.share != StashPolicy::Share::kForgotten) return;
    const auto known = keys_.find(*key);
    if (known != keys_.end() && known->second == id) keys_.erase(known);
  }
  void unstash(std::map<Id, Stashed>::iterator stashed) {
    waiting_.remove(stashed->second.tensor->storage);
    stash_.erase(stashed);
  }

  sim::Tensor unpack(Id id) {
    const GraphTaskId task = autograd_.graph_task();
    if (next_unpack_is_first_) begin_backward(task);
    const auto found = tracker_.find(id);
    if (found == tracker_.end()) {
      throw std::runtime_error("untracked tensor: number " + std::to_string(id));
    }
    const bool moved = found->second.kept == nullptr;
    if (moved && autograd_.node() != node_) {
      node_ = autograd_.node();
      before_.clear();
      for (const auto& [other, tensor] : restored_) {
        if (task == task_) before_.push_back(other);
      }
    }
    sim::Tensor tensor = found->second.kept ? found->second.kept : bring(id, found->second.copy);
    forget(found->second.key, id);
    drop(found->second);
    tracker_.erase(found);
    if (policy_.forward == StashPolicy::Forward::kAfterUnpack || tracker_.empty()) {
      next_is_first_ = true;
    }
    const auto restored = restored_.find(id);
    const long uses = restored == restored_.end() ? 0 : device_.use_count(tensor->storage);
    // If a node unpacks only tensors that did not move, nothing sees its end, and nothing is
    // released.
    if (moved) autograd_.after_node([this, id, uses] { after_node(id, uses); });
    return device_.detach(tensor);
  }

  void begin_backward(GraphTaskId task) {
    task_ = task;
    node_ = NodeId::kNone;
    before_.clear();
    next_unpack_is_first_ = false;
    autograd_.after_task([this] {
      if (std::uncaught_exceptions() > 0) return;  // PyTorch does not call back after a failure
      while (!restored_.empty()) release(restored_.begin()->first);
    });
  }

  sim::Tensor bring(Id id, const HostCopy& copy) {
    const auto stashed = stash_.find(id);
    if (stashed != stash_.end()) {
      const sim::Tensor& source = stashed->second.tensor;
      return device_.restore(source->storage, source->layout, 0, copy.version);
    }
    check_offset(copy.layout.window->layout);
    const sim::Tensor tensor = reload(device_, copy, s1_, s1_);
    order(device_, Step::kReloaded, s1_, Step::kConsume, s0());
    restored_[id] = tensor;
    return tensor;
  }

  // Stands for as_strided with the view's offset. It fails on a copy that begins at the view.
  void check_offset(const Layout& layout) const {
    if (policy_.drops_offset || layout.offset == 0) return;
    if (layout.strides != contiguous_strides(layout.shape)) return;  // copied at its offset
    throw std::runtime_error("as_strided: out of bounds for a storage of the view's size");
  }

  // Called when the node has run. Records an event, or a use if the unpacked tensor outlives the
  // node. `uses`: the restored storage's use count when it was unpacked; 0: nothing was restored.
  void after_node(Id id, long uses) {
    const auto restored = restored_.find(id);
    if (uses > 0 && restored != restored_.end()) {
      if (escaped(restored->second, uses)) {
        device_.record_use(Step::kEscaped, restored->second->storage, s0());
        restored_.erase(restored);
      } else {
        events_[id] = device_.record(Step::kNodeDone, s0());
      }
    }
    while (!stash_.empty()) drop_oldest();
    for (const Id before : std::exchange(before_, {})) release(before);
  }

  bool escaped(const sim::Tensor& tensor, long uses) {
    switch (policy_.escape) {
      case StashPolicy::Escape::kUnseen:
        return false;
      case StashPolicy::Escape::kResults:
        for (const sim::Value& result : autograd_.node_results()) {
          if (result.tensor && result.tensor->storage == tensor->storage) return true;
        }
        return false;
      case StashPolicy::Escape::kCounted:
        return device_.use_count(tensor->storage) > uses;
    }
    return true;
  }

  void release(Id id) {
    if (const auto event = events_.find(id); event != events_.end()) {
      device_.wait(Step::kReleaseAfterNode, s1_, event->second);
      if (policy_.drops_events) events_.erase(event);
    }
    restored_.erase(id);
  }

  void leave() {
    if (!policy_.exit_clears) return;
    device_.synchronize(s0());
    device_.synchronize(s1_);
    while (!stash_.empty()) unstash(stash_.begin());
    restored_.clear();
    events_.clear();
  }

  void enter() {
    if (policy_.enter == StashPolicy::Enter::kKeeps) return;
    drop_tracked();
    if (policy_.enter == StashPolicy::Enter::kRestarts) next_id_ = 0;
  }

  void drop_tracked() {
    for (auto& [id, tracked] : tracker_) drop(tracked);
    tracker_.clear();
    keys_.clear();
    next_is_first_ = true;
  }
  void drop(Tracked& tracked) {
    if (tracked.copy.buffer.block) give_back(device_, tracked.copy.buffer, s1_);
    if (tracked.key) kept_.remove(tracked.kept->storage);
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const StashPolicy policy_;
  const StreamId first_stream_;
  const StreamId s1_;
  std::set<const sim::TensorImpl*> exempt_;            // these live as long as the program, and are
  std::set<const sim::StorageImpl*> exempt_storages_;  // looked up, never iterated
  Id next_id_ = 0;
  std::map<Id, Tracked> tracker_;
  std::map<Id, Stashed> stash_;
  Held waiting_, kept_;     // sources in the stash; tensors that stay though they could move
  std::map<Key, Id> keys_;  // for storages on their way, and those that stay
  std::map<Id, sim::Tensor> restored_;
  std::map<Id, sim::EventHandle> events_;  // recorded after nodes that used restored tensors
  bool next_is_first_ = true;
  bool next_unpack_is_first_ = false;
  GraphTaskId task_ = GraphTaskId::kNone;  // the task that counts as the backward
  NodeId node_ = NodeId::kNone;
  std::vector<Id> before_;  // numbers that earlier nodes unpacked
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_stash(sim::SimDevice device, sim::SimAutograd autograd,
                                           StashPolicy policy) {
  return sim::adapted<Stash>(device, autograd, policy);
}

}  // namespace ferry::field
