// Selective checkpointing: a policy decides for each op in a checkpointed function whether its
// outputs are kept (or offloaded) for the recompute, or whether the recompute runs the op again.
//
//   forward                                  a recompute
//
//   op ── runs ── policy: save ──▶ entry     op ── entry ──▶ the outputs that forward had
//   op ── runs ── policy: recompute          op ── runs
//
// A call is identified by the name of its op and its number among the calls of this op. The policy
// is called in forward, and a recompute follows that decision. It is called again only if the
// recompute makes a call that forward did not make. Such a call runs if the policy does not keep it
// and no other call of this op was kept. Otherwise the calls cannot be matched, which is an error.
// Each entry serves one recompute: only one backward may go through a region. An entry that no
// recompute takes, because recomputes stop early, lives as long as the cache.
//
// Kept tensors have no graph, because a graph would own itself through the checkpoint. They share
// their version counter with the tensor that forward goes on with, so using one that was written
// since is an error. Offloaded tensors are given to the hooks around the checkpoint, and come back
// when the recompute takes them. If there are no such hooks, or they decline, the tensor is kept.
// The hooks compare versions themselves, so allow_mutation has no effect on the tensors that they
// have.
//
// Source: torch/utils/checkpoint.py, create_selective_checkpoint_contexts, which declares
// offloading but does not implement it. Up to PyTorch 2.11 it calls the policy in both runs.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shared/checkpoint/checkpoint_rules.h"
#include "shared/checkpoint/hooks.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

namespace ferry {

// PyTorch's enum, with its values. "Must" and "prefer" mean the same here, as nothing overrules a
// policy.
enum class CheckpointPolicy : std::uint8_t {
  kMustSave,
  kPreferSave,
  kMustRecompute,
  kPreferRecompute,
  kMustOffload,
  kPreferOffload,
};

// Converts the result of a policy that returns a bool: true means save.
inline CheckpointPolicy to_policy(bool save) {
  return save ? CheckpointPolicy::kMustSave : CheckpointPolicy::kPreferRecompute;
}

inline bool offloads(CheckpointPolicy policy) { return policy >= CheckpointPolicy::kMustOffload; }
// True if the outputs live longer than forward, on the device or on the host.
inline bool keeps(CheckpointPolicy policy) {
  return policy <= CheckpointPolicy::kPreferSave || offloads(policy);
}

namespace selective_text {

inline constexpr const char* kMutated =
    "Tensor cached during selective activation checkpoint has been mutated";
inline constexpr const char* kTwice =
    "Trying to backward an extra time. You are only allowed to backward once on any region "
    "computed under selective activation checkpoint.";

// `index` is none if forward did not run the op at all.
inline std::string unknown(std::string_view op, std::optional<std::size_t> index) {
  return std::string(op) + (index ? " invocation index " + std::to_string(*index) : "") +
         " encountered during backward but not found in storage. This can happen if the operations "
         "in the checkpointed region are nondeterministic or depend on global state that changed "
         "between forward and backward.";
}

}  // namespace selective_text

// This file needs a part of ComputeDevice (shared/seam/device.h), and `alias`.
template <class D>
concept SelectiveDevice = requires(D device, const typename D::Tensor tensor,
                                   const typename D::Version version) {
  requires std::copyable<typename D::Tensor>;
  requires std::default_initializable<typename D::Mutex>;
  { device.version(tensor) } -> std::same_as<typename D::Version>;
  { device.read(version) } -> std::same_as<std::uint64_t>;
  // Returns a new tensor on the same bytes, with the same version counter and no graph. It must not
  // return the same object, because an output gets its graph only after the op has ended.
  { device.alias(tensor) } -> std::same_as<typename D::Tensor>;
};

// The outputs that one checkpointed call keeps. Thread-safe. `Other` is for results that are not
// tensors; they are kept whatever the policy says.
template <SelectiveDevice D, class Other = std::monostate>
class SelectiveCache {
 public:
  using Tensor = typename D::Tensor;
  using Output = std::variant<Tensor, Other>;
  using Outputs = std::vector<Output>;

  // `hooks` are those in force where the checkpoint is called. In a recompute outputs are not
  // offloaded but kept, because they are used soon.
  SelectiveCache(D device, const HookStack<Tensor>& hooks, bool allow_mutation,
                 const CheckpointRules& rules = Rules())
      : device_(std::move(device)), allow_mutation_(allow_mutation), rules_(rules) {
    if (!checkpoint_context(hooks).recomputing) around_ = around_checkpoints(hooks);
    around_.checkpoint = nullptr;  // the context would keep the recomputed tensors of a group alive
  }

  // Returns how often forward has run `op`.
  std::size_t calls(std::string_view op) {
    const std::lock_guard lock(mutex_);
    const auto known = calls_.find(op);
    return known != calls_.end() ? known->second.size() : 0;
  }

  // Records that forward ran `op` once more. Throws what the hooks throw.
  void ran(std::string_view op, CheckpointPolicy policy, const Outputs& outputs) {
    Entry entry;
    if (keeps(policy) && rules_.keeps_outputs()) {
      entry.state = Entry::State::kStored;
      for (const Output& output : outputs) entry.outputs.push_back(keep(output, policy));
    }
    const std::lock_guard lock(mutex_);
    const auto known = calls_.find(op);
    auto& calls = known != calls_.end() ? known->second : calls_[std::string(op)];
    calls.push_back(std::move(entry));
  }

  // Returns the outputs of call number `index` of `op` in forward, or none if the op must run.
  // `policy` is called if forward made no such call. If this throws, what was kept stays kept.
  template <class Policy>
  std::optional<Outputs> take(std::string_view op, std::size_t index, Policy&& policy) {
    if (calls(op) <= index) {
      if (keeps_some(op) || keeps(policy())) throw unknown(op, index);
      return std::nullopt;
    }
    std::vector<Kept> kept;
    {
      const std::lock_guard lock(mutex_);
      Entry& entry = entry_of(op, index);
      if (entry.state == Entry::State::kRuns) return std::nullopt;
      if (entry.state == Entry::State::kTaken)
        throw make_error<Tensor>(Error(selective_text::kTwice));
      check(entry);
      entry.state = Entry::State::kTaken;
      kept = std::exchange(entry.outputs, {});
    }
    Outputs outputs;
    try {
      for (Kept& output : kept) outputs.push_back(give(output));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      Entry& entry = entry_of(op, index);
      entry.state = Entry::State::kStored;
      entry.outputs = std::move(kept);
      throw;
    }
    return outputs;
  }

 private:
  using SavedRef = std::unique_ptr<Saved<Tensor>>;
  struct KeptTensor {
    std::variant<Tensor, SavedRef> tensor;
    typename D::Version version;
    std::uint64_t version_at_save;
  };
  using Kept = std::variant<KeptTensor, Other>;
  struct Entry {
    enum class State : std::uint8_t { kRuns, kStored, kTaken } state = State::kRuns;
    std::vector<Kept> outputs;
  };

  Kept keep(const Output& output, CheckpointPolicy policy) {
    if (const Other* const other = std::get_if<Other>(&output)) return *other;
    Tensor tensor = device_.alias(std::get<Tensor>(output));
    typename D::Version version = device_.version(tensor);
    const std::uint64_t now = device_.read(version);
    SavedRef saved = offloads(policy) ? around_.pack(tensor) : nullptr;
    if (saved) return KeptTensor{std::move(saved), std::move(version), now};
    return KeptTensor{std::move(tensor), std::move(version), now};
  }

  Entry& entry_of(std::string_view op, std::size_t index) { return calls_.find(op)->second[index]; }

  bool keeps_some(std::string_view op) {
    const std::lock_guard lock(mutex_);
    const auto known = calls_.find(op);
    if (known == calls_.end()) return false;
    const auto is_kept = [](const Entry& entry) { return entry.state != Entry::State::kRuns; };
    return std::any_of(known->second.begin(), known->second.end(), is_kept);
  }

  auto unknown(std::string_view op, std::size_t index) {
    const auto at = calls(op) > 0 ? std::optional(index) : std::nullopt;
    return make_error<Tensor>(Error(selective_text::unknown(op, at)));
  }

  void check(const Entry& entry) {
    if (allow_mutation_ || !rules_.checks_outputs()) return;
    for (const Kept& output : entry.outputs) {
      const auto* const kept = std::get_if<KeptTensor>(&output);
      if (kept && device_.read(kept->version) != kept->version_at_save) {
        throw make_error<Tensor>(Error(selective_text::kMutated));
      }
    }
  }

  // Does not change `kept`, because restoring a later output may still fail.
  Output give(const Kept& kept) {
    if (const Other* const other = std::get_if<Other>(&kept)) return *other;
    const auto& from = std::get<KeptTensor>(kept).tensor;
    if (const SavedRef* const saved = std::get_if<SavedRef>(&from)) {
      return device_.alias((*saved)->unpack());
    }
    return std::get<Tensor>(from);
  }

  D device_;
  const bool allow_mutation_;
  const CheckpointRules rules_;
  HookStack<Tensor> around_;

  typename D::Mutex mutex_;
  std::map<std::string, std::vector<Entry>, std::less<>> calls_;
};

// One recompute. Thread-safe. It keeps the cache alive.
template <SelectiveDevice D, class Other = std::monostate>
class SelectiveRecompute {
 public:
  using Cache = SelectiveCache<D, Other>;

  explicit SelectiveRecompute(std::shared_ptr<Cache> cache) : cache_(std::move(cache)) {}

  // Counts one more call of `op` and returns its kept outputs, or none if the op must run. `policy`
  // is called if forward made no such call.
  template <class Policy>
  std::optional<typename Cache::Outputs> next(std::string_view op, Policy&& policy) {
    return cache_->take(op, count(op), std::forward<Policy>(policy));
  }

 private:
  std::size_t count(std::string_view op) {
    const std::lock_guard lock(mutex_);
    const auto known = calls_.find(op);
    std::size_t& calls = known != calls_.end() ? known->second : calls_[std::string(op)];
    return calls++;
  }

  std::shared_ptr<Cache> cache_;
  typename D::Mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> calls_;
};

}  // namespace ferry
