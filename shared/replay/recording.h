// The recording of a span: the operator calls that made its storages. A replay can make the
// storages again from these calls, without any user function.
//
//   forward                            a replay, for `c` alone
//
//   call 0:  a = f(x)                  a' = f(x)
//   call 1:  b = g(a)                  (b is not needed)
//   call 2:  c = h(a, w)               c' = h(a', w);  a' goes: no later call needs it
//
// A *made* storage is one that a recorded call made. An argument of a call is either a window on a
// made storage, or a held tensor from outside the span. Views are windows, not calls. A call that
// writes a made storage in place is replayed too, so a storage has different values at each
// *position*, the number of calls before it. A storage whose first contents are undefined counts as
// made once a call has overwritten all of it.
//
// The decision which calls are recorded is in recorder.h. There is no lock here.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shared/checkpoint/kept_tensor.h"
#include "shared/replay/replay_rules.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"
#include "shared/seam/invariant.h"

namespace ferry {

// Replay needs a part of Device (shared/seam/device.h), and `plain` and `dense`.
template <class D>
concept ReplayDevice = ComputeDevice<D> &&
    requires(D device, const typename D::Storage storage, const typename D::Tensor tensor,
             const typename D::Layout layout, const typename D::Version version,
             std::int64_t bytes) {
  requires std::copyable<typename D::WeakStorage>;
  requires std::copyable<typename D::Layout>;
  { device.bytes(storage) } -> std::same_as<std::int64_t>;
  { device.exists(storage) } -> std::same_as<bool>;
  { device.identity(storage) } -> std::same_as<std::uint64_t>;
  { device.weak(storage) } -> std::same_as<typename D::WeakStorage>;
  { device.layout(tensor) } -> std::same_as<typename D::Layout>;
  { device.extent(layout) } -> std::same_as<Extent>;
  { device.restore(storage, layout, bytes, version) } -> std::same_as<typename D::Tensor>;
  // True if the tensor is just a view of its storage, so that `restore` makes an equal one.
  { device.plain(tensor) } -> std::same_as<bool>;
  // True if the elements fill the extent and no byte belongs to two of them.
  { device.dense(tensor) } -> std::same_as<bool>;
};

// A replay made another result than forward.
class ReplayError : public Error {
 public:
  using Error::Error;
};

// A tensor from outside the span that calls of the span read. It stays where it is until the span
// ends. Then it goes through the hooks around the span, unless it was written meanwhile: the hooks
// would save the new values, and the calls read the old ones.
template <ReplayDevice D>
class HeldArgument {
 public:
  using Tensor = typename D::Tensor;

  // `tensor` must have no graph.
  HeldArgument(D device, Tensor tensor, bool passes)
      : tensor_(passes ? std::optional<Tensor>(tensor) : std::nullopt),
        kept_(std::make_shared<KeptTensor<D>>(std::move(device), std::move(tensor))),
        saved_(kept_) {}

  // Returns the object that unpacks it now. The caller may keep that object.
  std::shared_ptr<Saved<Tensor>> saved() const { return saved_; }
  // Returns the tensor to give to the hooks around; none if it stays.
  std::optional<Tensor> passing() const {
    return kept_ && !kept_->written() ? tensor_ : std::nullopt;
  }
  // From now on the hooks around have the tensor; if `packed` is null, they left it where it is.
  // The caller must drop the returned objects.
  std::pair<std::optional<Tensor>, std::shared_ptr<Saved<Tensor>>> pass(
      std::shared_ptr<Saved<Tensor>> packed) {
    invariant(kept_ != nullptr, "an argument is passed to the hooks around once");
    std::pair dropped{std::exchange(tensor_, std::nullopt), std::shared_ptr<Saved<Tensor>>()};
    kept_ = nullptr;
    if (packed) dropped.second = std::exchange(saved_, std::move(packed));
    return dropped;
  }

 private:
  std::optional<Tensor> tensor_;
  std::shared_ptr<KeptTensor<D>> kept_;  // until the tensor was passed on
  std::shared_ptr<Saved<Tensor>> saved_;
};

// One recorded call.
template <ReplayDevice D>
struct ReplayCall {
  using Tensor = typename D::Tensor;
  // Runs the operator again on these tensors, without graph and hooks, with the random numbers and
  // the ambient state of the first time. Returns the outputs in the same order.
  using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>& arguments)>;

  struct Window {
    std::size_t storage;  // number of a made storage
    typename D::Layout layout;
  };
  using Held = std::shared_ptr<HeldArgument<D>>;
  struct Output {
    std::size_t storage;
    std::size_t output;  // index of the first output on it
  };

  Run run;
  std::vector<std::variant<Window, Held>> arguments;
  std::vector<std::size_t> writes;  // storages that it writes in place
  std::vector<Output> makes;
};

// A storage with the values that it had after `position` calls.
struct ReplayTarget {
  std::size_t storage = 0;
  std::size_t position = 0;
};

template <ReplayDevice D>
class ReplayRecording {
 public:
  using Tensor = typename D::Tensor;
  using Call = ReplayCall<D>;
  using CallRef = std::shared_ptr<const Call>;

  std::size_t position() const { return calls_.size(); }
  std::size_t storages() const { return bytes_.size(); }

  // Returns the number of a storage that the next call makes.
  std::size_t add_storage(std::int64_t bytes) {
    bytes_.push_back(bytes);
    return bytes_.size() - 1;
  }
  void add(Call call) {
    check(call);
    calls_.push_back(std::make_shared<const Call>(std::move(call)));
  }

  // Returns the numbers of the calls that these targets need, in order.
  std::vector<std::size_t> needed(const std::vector<ReplayTarget>& targets,
                                  const ReplayRules& rules) const {
    std::vector<std::size_t> until(storages(), 0);  // last position where it is read
    const auto need = [&until](std::size_t storage, std::size_t position) {
      until[storage] = std::max(until[storage], position);
    };
    for (const ReplayTarget& target : targets) {
      invariant(target.storage < storages(), "only a storage that the span made is made again");
      invariant(target.position <= position(), "no saved tensor is from after the last call");
      need(target.storage, target.position);
    }
    std::vector<std::size_t> needed;
    for (std::size_t i = calls_.size(); i-- > 0;) {
      if (!calls_[i]) continue;
      const Call& call = *calls_[i];
      const auto is_read_later = [&](std::size_t storage) { return until[storage] > i; };
      const bool makes = std::any_of(call.makes.begin(), call.makes.end(),
                                     [&](const auto& made) { return is_read_later(made.storage); });
      const bool writes = std::any_of(call.writes.begin(), call.writes.end(), is_read_later);
      if (!makes && !writes && rules.stops_early()) continue;
      needed.push_back(i);
      for (const auto& argument : call.arguments) {
        if (const auto* window = std::get_if<typename Call::Window>(&argument)) {
          need(window->storage, i);
        }
      }
    }
    std::reverse(needed.begin(), needed.end());
    return needed;
  }

  // Forgets all calls except those with these numbers. Returns the old list, so that the caller can
  // destroy it outside its lock.
  std::vector<CallRef> keep_only(const std::vector<std::size_t>& numbers) {
    std::vector<CallRef> kept(calls_.size());
    for (const std::size_t number : numbers) {
      invariant(number < calls_.size(), "a call that is kept was recorded");
      kept[number] = calls_[number];
    }
    return std::exchange(calls_, std::move(kept));
  }

  const CallRef& call(std::size_t number) const { return calls_[number]; }
  std::int64_t bytes(std::size_t storage) const { return bytes_[storage]; }

 private:
  void check(const Call& call) const {
    for (const auto& argument : call.arguments) {
      const auto* const window = std::get_if<typename Call::Window>(&argument);
      invariant(!window || window->storage < storages(), "a window is on a storage that is made");
    }
    for (const std::size_t storage : call.writes) {
      invariant(storage < storages(), "a recorded call writes only what the span made");
    }
    for (const auto& made : call.makes) {
      invariant(made.storage < storages(), "a storage has its number before its call");
    }
  }

  std::vector<CallRef> calls_;
  std::vector<std::int64_t> bytes_;  // by number of the made storage
};

}  // namespace ferry
