// Frozen weights that live on the host: wards (wards.h) that forward and backward read.
//
// A module holds its weights while its forward runs. What autograd saves of a weight, such as its
// transpose, keeps no bytes: `refer` makes a reference to the weight. From the unpacking of such a
// reference until it is dropped, the weight is held again. So a step needs no checkpoint, and only
// what is in use or expected soon is on the device.
//
// Calls may come from several threads; one at a time is served.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "shared/seam/hooks.h"
#include "shared/seam/invariant.h"
#include "shared/state/wards.h"

namespace ferry {

template <Device D>
class Weights : public std::enable_shared_from_this<Weights<D>> {
 public:
  using Storage = typename D::Storage;
  using Tensor = typename D::Tensor;

  Weights(D device, WardOptions options)
      : device_(std::move(device)), wards_(device_, std::move(options)) {}

  // Copies a storage, which the current stream may read, to the host. If it throws, there is no
  // weight.
  WardId add(const Storage& storage) {
    typename D::HostBuffer host = wards_.host_for(storage);
    const std::lock_guard lock(mutex_);
    const WardId id = wards_.add(storage, std::move(host));
    try {
      wards_.written(id);
      wards_.leave_all();
    } catch (...) {
      wards_.remove(id);
      throw;
    }
    users_[id] = {};
    return id;
  }

  // Returns the weight's storage. The current stream may read it until the `release` that belongs
  // to this call.
  Storage hold(WardId id) {
    const std::lock_guard lock(mutex_);
    return hold_locked(id);
  }
  void release(WardId id) noexcept {
    const std::lock_guard lock(mutex_);
    release_locked(id);
  }

  // Returns what autograd saves in place of a tensor that lies in this weight's storage.
  std::unique_ptr<Saved<Tensor>> refer(WardId id, const Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    ++users(id).references;
    return std::make_unique<Reference>(this->shared_from_this(), id, device_.layout(tensor),
                                       device_.version(tensor));
  }

  // The weight ends; references to it remain good until they are dropped.
  void remove(WardId id) noexcept {
    const std::lock_guard lock(mutex_);
    users(id).is_removed = true;
    end_if_unused(id);
  }

  WardStatistics statistics() const {
    const std::lock_guard lock(mutex_);
    return wards_.statistics();
  }

 private:
  struct Users {
    int holds = 0;
    int references = 0;
    bool is_removed = false;
  };

  class Reference final : public Saved<Tensor> {
   public:
    Reference(std::shared_ptr<Weights> weights, WardId id, typename D::Layout layout,
              typename D::Version version)
        : weights_(std::move(weights)),
          id_(id),
          layout_(std::move(layout)),
          version_(std::move(version)),
          at_save_(weights_->device_.read(version_)) {}
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;
    ~Reference() override {
      const std::lock_guard lock(weights_->mutex_);
      if (is_held_) weights_->release_locked(id_);
      --weights_->users(id_).references;
      weights_->end_if_unused(id_);
    }
    Tensor unpack() override {
      const std::lock_guard lock(weights_->mutex_);
      const std::uint64_t now = weights_->device_.read(version_);
      if (now != at_save_) throw make_error<Tensor>(ModifiedInPlace(now, at_save_));
      const Storage storage = is_held_ ? weights_->wards_.share(id_) : weights_->hold_locked(id_);
      is_held_ = true;
      return weights_->device_.restore(storage, layout_, 0, version_);
    }

   private:
    const std::shared_ptr<Weights> weights_;
    const WardId id_;
    const typename D::Layout layout_;
    const typename D::Version version_;
    const std::uint64_t at_save_;
    bool is_held_ = false;  // since it was unpacked
  };

  Users& users(WardId id) {
    const auto found = users_.find(id);
    invariant(found != users_.end(), "a weight is used from its `add` to its `remove`");
    return found->second;
  }

  Storage hold_locked(WardId id) {
    Users& of = users(id);
    const Storage storage = of.holds > 0 ? wards_.share(id) : wards_.take(id);
    ++of.holds;
    return storage;
  }

  void release_locked(WardId id) noexcept {
    Users& of = users(id);
    invariant(of.holds > 0, "a weight is held before it is released");
    if (--of.holds > 0) return;
    wards_.give_back(id, false);
    wards_.bring_ahead();
    end_if_unused(id);
  }

  void end_if_unused(WardId id) noexcept {
    const Users& of = users(id);
    if (!of.is_removed || of.holds > 0 || of.references > 0) return;
    users_.erase(id);
    wards_.remove(id);
  }

  // It is held during calls of the device, which may wait for a copy and drop storages of Ferry's
  // own. So a thread that waits for it must hold no other lock (Python's: real/python/gil.h).
  mutable std::mutex mutex_;
  D device_;
  Wards<D> wards_;
  std::map<WardId, Users> users_;
};

}  // namespace ferry
