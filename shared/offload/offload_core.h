// The core of the offloader: how its hooks pack and unpack, and what its saves keep alive.
//
// pack keeps the tensor, or finds the parcel that already has its bytes, or makes a new one
// (shared/offload/outbound.h). unpack returns the source if it still lives, or a target that is
// already on the device, or reloads (shared/offload/inbound.h); then it prefetches. A parcel dies
// with its last save, so dropping a graph without a backward frees everything. Unpacking again is
// allowed.
//
// Saves own their parcels and the core; the guard that installed the hooks may be gone. One lock
// guards the core. Under it no storage is dropped, no user code runs and no thread waits for a
// copy.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/offload/choice.h"
#include "shared/offload/context.h"
#include "shared/offload/inbound.h"
#include "shared/offload/outbound.h"
#include "shared/offload/section.h"
#include "shared/offload/tracker.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"
#include "shared/seam/host_full.h"
#include "shared/seam/invariant.h"

namespace ferry {

// Returns the warning that the host's memory is nearly full. It uses integer arithmetic.
inline std::string host_warning(const HostUsage& usage, std::int64_t safe_percent) {
  const std::int64_t tenths =
      usage.used_bytes / (std::max<std::int64_t>(usage.total_bytes, 1000) / 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         "% of the host's memory is in use, more than " + std::to_string(safe_percent) +
         "%: page-locked memory for offloaded tensors may run out";
}

template <Device D, Autograd A>
class OffloadCore final : public OffloadHooks<typename D::Tensor>,
                          public std::enable_shared_from_this<OffloadCore<D, A>> {
 public:
  using Tensor = typename D::Tensor;
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;
  using ParcelRef = std::shared_ptr<Parcel<D>>;

  // The position of a save in the order of packing.
  struct Place {
    std::uint64_t run = 0;
    std::uint64_t pack = 0;
    std::uint64_t sequence = 0;
  };

  // Autograd keeps this object instead of an offloaded tensor.
  class Save final : public Saved<Tensor> {
   public:
    Save(std::shared_ptr<OffloadCore> core, ParcelRef parcel, typename D::Layout layout,
         Place place)
        : place_(place),
          core_(std::move(core)),
          parcel_(std::move(parcel)),
          layout_(std::move(layout)) {}
    Save(const Save&) = delete;
    Save& operator=(const Save&) = delete;
    ~Save() override {
      if (parcel_) core_->forget(*this);
    }
    Tensor unpack() override { return core_->unpack(*this); }

   private:
    friend class OffloadCore;
    Place place_;
    std::shared_ptr<OffloadCore> core_;
    ParcelRef parcel_;  // null until the copy was enqueued
    typename D::Layout layout_;
    GraphTaskId unpacked_in_ = GraphTaskId::kNone;
  };

  // Autograd keeps this object instead of a tensor that stays on its device.
  class Kept final : public Saved<Tensor> {
   public:
    Kept(std::shared_ptr<OffloadCore> core, Tensor tensor, Place place)
        : place_(place),
          core_(std::move(core)),
          tensor_(std::move(tensor)),
          version_(core_->context_.device.version(tensor_)),
          version_at_save_(core_->context_.device.read(version_)) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() override {
      if (storage_) core_->unkeep(*storage_);
    }
    Tensor unpack() override {
      core_->check_version(version_, version_at_save_);
      core_->look_ahead(place_);
      return tensor_;
    }

   private:
    friend class OffloadCore;
    Place place_;
    std::shared_ptr<OffloadCore> core_;
    Tensor tensor_;
    typename D::Version version_;
    std::uint64_t version_at_save_;
    std::optional<std::uint64_t> storage_;  // as tracked; none on other devices
  };

  OffloadCore(D device, A autograd, CoreOptions options, Rules rules)
      : context_(std::move(device), std::move(options), rules),
        autograd_(std::move(autograd)),
        outbound_(context_),
        inbound_(context_, tracker_),
        choice_(context_, tracker_) {}

  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    std::unique_ptr<Saved<Tensor>> saved;  // dropped outside the lock if a wait fails
    Section<D> section(mutex_, context_, outbound_);
    saved = pack_under_lock(tensor, section);
    if (const std::exception_ptr error = section.catch_up()) std::rethrow_exception(error);
    return saved;
  }

  Tensor unpack(Save& save) {
    const GraphTaskId task = autograd_.graph_task();
    const NodeId node = autograd_.node();
    bool first_of_node = false;
    begin_task(task);
    std::optional<Tensor> tensor;
    std::exception_ptr error;
    {
      Section<D> section(mutex_, context_, outbound_);
      Bin<D>& bin = section.bin;
      invariant(save.parcel_ != nullptr, "a save that is unpacked was sent");
      Parcel<D>& parcel = *save.parcel_;
      invariant(parcel.saves > 0, "a parcel lives as long as a save of it");
      check_version(parcel.version, parcel.version_at_pack);
      Storage source = context_.device.lock(parcel.source);
      if (context_.device.exists(source)) bin.drop(Storage(source));  // perhaps the last reference
      check_place(parcel, source);
      const Stream consumer = context_.current();
      if (context_.device.exists(source) && context_.rules.uses_source()) {
        // No order is needed, as in autograd itself: the user is already ordered after the writer.
        tensor = context_.device.restore(source, save.layout_, 0, parcel.version);
        count_unpack(save, task);
        ++context_.statistics.stash_hits;
      } else {
        tensor = from_target(save, consumer, task, node, first_of_node, bin);
      }
      context_.log(DecisionKind::kUnpack, parcel);
      error = go_on(save.place_, consumer, task, section);
      if (error) {  // the next unpack then tries again
        count_unpack(save, GraphTaskId::kNone);
        inbound_.let_go(parcel, task, bin);
      }
    }
    warn_once();
    if (first_of_node) autograd_.after_node(at_end_of(task, node));
    if (error) std::rethrow_exception(error);
    return *std::move(tensor);
  }

  // Called when a kept tensor was unpacked.
  void look_ahead(const Place& place) {
    if (parcels_.load(std::memory_order_relaxed) == 0) return;
    const GraphTaskId task = autograd_.graph_task();
    if (!looks_ahead(task)) return;
    begin_task(task);
    Section<D> section(mutex_, context_, outbound_);
    const std::exception_ptr error = go_on(place, context_.current(), task, section);
    if (error) std::rethrow_exception(error);
  }

  void forget(Save& save) noexcept {
    Section<D> section(mutex_, context_, outbound_);
    Bin<D>& bin = section.bin;
    Parcel<D>& parcel = *save.parcel_;
    invariant(parcel.saves > 0, "a parcel loses no more saves than it has", Step::kHostReturn);
    --parcel.saves;
    parcel.count_unpacked(save.unpacked_in_, -1);
    if (parcel.saves > 0) {
      if (parcel.pending(parcel.task) == 0) inbound_.let_go_held(parcel, parcel.task, bin);
      return;
    }
    const std::int64_t alive = parcels_.fetch_sub(1, std::memory_order_relaxed);
    invariant(alive > 0, "no more parcels die than were sent", Step::kHostReturn);
    outbound_.forget(parcel, bin);
    inbound_.let_go(parcel, parcel.task, bin);
    outbound_.return_host(parcel);
    context_.bounds.returned(parcel.extent.bytes());
    context_.log(DecisionKind::kReturn, parcel);
    if (context_.rules.forgets_parcels()) tracker_.erase(parcel);
    if (!parcel.ever_reloaded) {
      context_.statistics.vain_count += 1;
      context_.statistics.vain_bytes += parcel.extent.bytes();
    }
  }

  void unkeep(std::uint64_t storage) noexcept {
    const std::lock_guard lock(mutex_);
    tracker_.unkeep(storage);
  }

  void check_version(const typename D::Version& version, std::uint64_t at_save) {
    const std::uint64_t now = context_.device.read(version);
    if (now == at_save || !context_.rules.checks_versions()) return;
    throw make_error<Tensor>(ModifiedInPlace(now, at_save));
  }

  // Throws if the storage of a saved tensor has other memory than at its save. If the storage no
  // longer exists, it had its memory until its copy ended, so there is nothing to check.
  void check_place(const Parcel<D>& parcel, const Storage& source) {
    if (!context_.rules.checks_versions()) return;
    const bool moved =
        context_.device.exists(source) && (context_.device.address(source) != parcel.key.address ||
                                           context_.device.bytes(source) < parcel.extent.end);
    if (moved || parcel.replaced) throw make_error<Tensor>(StorageReplaced());
  }

  void exempt(const Tensor& tensor) override {
    Section<D> section(mutex_, context_, outbound_);
    choice_.exempt(tensor, section.bin);
  }

  void begin_run() override {
    const std::lock_guard lock(mutex_);
    ++run_;
    pack_ = 0;
    context_.bounds.begin_run();
  }

  void continue_at(std::uint64_t run, std::uint64_t pack) override {
    const std::lock_guard lock(mutex_);
    if (run != run_) context_.bounds.begin_run();
    run_ = run;
    pack_ = pack;
  }

  OffloadStatistics statistics() override {
    const std::lock_guard lock(mutex_);
    return context_.statistics;
  }

  bool empty() override {
    const std::lock_guard lock(mutex_);
    return tracker_.empty() && inbound_.empty() && outbound_.empty();
  }

 private:
  std::unique_ptr<Saved<Tensor>> pack_under_lock(const Tensor& tensor, Section<D>& section) {
    D& device = context_.device;
    Bin<D>& bin = section.bin;
    const Storage storage = device.storage(tensor);
    const Place place{run_, pack_++, sequence_++};
    ++context_.statistics.packs;
    outbound_.evict_old(place.sequence, bin);
    // So small a storage is never offloaded: there is nothing to decide or to remember.
    const bool small = device.bytes(storage) < context_.options.min_bytes;
    const bool here = !small && (device.on_device(tensor) || !context_.rules.keeps_other_devices());
    const Extent extent = here ? choice_.travelling(tensor, storage) : Extent{};
    if (!choice_.wants(tensor, storage, extent, place.pack, bin))
      return keep(tensor, storage, place, small);
    if (auto save = share(tensor, storage, extent, place)) return save;
    std::optional<HostRoom<D>> room;
    section.unlocked([&] { make_room(room, extent.bytes()); });
    // Another thread may have sent it meanwhile.
    if (auto save = share(tensor, storage, extent, place)) return save;
    if (room) return send(tensor, storage, extent, *room, place, bin);
    ++context_.statistics.full;
    return keep(tensor, storage, place, small);
  }

  // Leaves `room` empty if the host is full and the options say to keep tensors then.
  void make_room(std::optional<HostRoom<D>>& room, std::int64_t bytes) {
    const CoreOptions& options = context_.options;
    try {
      room.emplace(context_.device, bytes, options.host_memory);
    } catch (const HostFull&) {
      if (!options.keep_when_full) throw;
    }
  }

  // Returns a save of the parcel that already has these bytes, or null.
  std::unique_ptr<Saved<Tensor>> share(const Tensor& tensor, const Storage& storage,
                                       const Extent& extent, const Place& place) {
    if (!context_.rules.shares_parcels()) return nullptr;
    const ParcelRef parcel = tracker_.find(choice_.key(tensor, storage),
                                           context_.rules.asks_for_cover() ? extent : Extent{});
    if (!parcel) return nullptr;
    auto save = std::make_unique<Save>(this->shared_from_this(), parcel,
                                       context_.device.layout(tensor), place);
    ++parcel->saves;
    ++context_.statistics.shared;
    return save;
  }

  std::unique_ptr<Saved<Tensor>> keep(const Tensor& tensor, const Storage& storage,
                                      const Place& place, bool small) {
    D& device = context_.device;
    ++context_.statistics.kept;
    auto kept = std::make_unique<Kept>(this->shared_from_this(), device.detach(tensor), place);
    if (!small && device.on_device(tensor)) {
      tracker_.keep(device.identity(storage));
      kept->storage_ = device.identity(storage);
    }
    return kept;
  }

  std::unique_ptr<Saved<Tensor>> send(const Tensor& tensor, const Storage& storage,
                                      const Extent& extent, HostRoom<D>& room, const Place& place,
                                      Bin<D>& bin) {
    D& device = context_.device;
    typename D::Layout layout = device.layout(tensor);
    typename D::Version version = device.version(tensor);
    const std::uint64_t version_at_pack = device.read(version);
    auto parcel = std::make_shared<Parcel<D>>(Parcel<D>{.key = choice_.key(tensor, storage),
                                                        .run = place.run,
                                                        .pack = place.pack,
                                                        .sequence = place.sequence,
                                                        .source = device.weak(storage),
                                                        .version = std::move(version),
                                                        .version_at_pack = version_at_pack,
                                                        .extent = extent,
                                                        .packed_on = context_.current()});
    outbound_.evict_for(device.bytes(storage), bin);
    // Once the copy runs, nothing may fail for lack of memory.
    auto save = std::make_unique<Save>(this->shared_from_this(), nullptr, std::move(layout), place);
    context_.make_room_to_log();
    tracker_.insert(parcel);  // not found by others before it has a save
    try {
      outbound_.send(parcel, storage, room);
    } catch (...) {
      tracker_.erase(*parcel);
      throw;
    }
    parcel->saves = 1;
    parcels_.fetch_add(1, std::memory_order_relaxed);
    context_.log(DecisionKind::kPack, *parcel);
    save->parcel_ = std::move(parcel);
    return save;
  }

  void count_unpack(Save& save, GraphTaskId task) {
    Parcel<D>& parcel = *save.parcel_;
    parcel.task = task;
    if (save.unpacked_in_ == task) return;
    parcel.count_unpacked(task, 1);
    parcel.count_unpacked(std::exchange(save.unpacked_in_, task), -1);
  }

  Tensor from_target(Save& save, const Stream& consumer, GraphTaskId task, NodeId node,
                     bool& first_of_node, Bin<D>& bin) {
    const ParcelRef& parcel = save.parcel_;
    const auto target = inbound_.bring(*parcel, consumer, bin);
    std::optional<Tensor> tensor;
    try {
      tensor = context_.device.restore(target->storage, save.layout_, parcel->extent.begin,
                                       parcel->version);
      count_unpack(save, task);
    } catch (...) {
      inbound_.let_go(*parcel, task, bin);
      throw;
    }
    if (node == NodeId::kNone) {
      target->escaped = true;  // the end of no node covers this use
    } else if (inbound_.needs_release()) {
      first_of_node = inbound_.use(target, consumer, task, node);
    }
    inbound_.settle(parcel, task, bin);
    return *std::move(tensor);
  }

  bool looks_ahead(GraphTaskId task) const {
    const CoreOptions& options = context_.options;
    const bool at_all = options.prefetch_bytes != 0 || options.prefetch_tensors != kUnlimited;
    return at_all && task != GraphTaskId::kNone;
  }

  // Call it when backward has unpacked the save at `place`. It evicts sources that were packed long
  // before, and prefetches saves packed shortly before. Returns the first error.
  std::exception_ptr go_on(const Place& place, const Stream& consumer, GraphTaskId task,
                           Section<D>& section) {
    if (looks_ahead(task)) {
      try {
        outbound_.evict_far(place.sequence, section.bin);
      } catch (...) {
        return std::current_exception();
      }
      inbound_.prefetch(place.run, place.sequence, consumer, task, section.bin);
    }
    return section.catch_up();
  }

  // Registers the callback for the end of the task before the task does anything else. Call it
  // without the lock: the callback takes the lock.
  void begin_task(GraphTaskId task) {
    if (task == GraphTaskId::kNone) return;
    {
      const std::lock_guard lock(mutex_);
      if (!inbound_.begin_task(task, sequence_)) return;
    }
    try {
      autograd_.after_task([self = this->shared_from_this(), task] {
        Section<D> section(self->mutex_, self->context_, self->outbound_);
        self->inbound_.after_task(task, section.bin);
      });
    } catch (...) {
      Section<D> section(mutex_, context_, outbound_);
      inbound_.cancel_task(task, section.bin);
      throw;
    }
  }

  std::function<void()> at_end_of(GraphTaskId task, NodeId node) {
    return [self = this->shared_from_this(), task, node] {
      Section<D> section(self->mutex_, self->context_, self->outbound_);
      self->inbound_.after_node(task, node, section.bin);
    };
  }

  void warn_once() {
    const CoreOptions& options = context_.options;
    if (!options.warn || options.host_memory != HostMemory::kPinned || warned_.exchange(true)) {
      return;
    }
    const HostUsage usage = context_.device.host_usage();
    if (usage.used_bytes <= usage.total_bytes / 100 * options.host_warn_percent ||
        usage.total_bytes == 0) {
      return;
    }
    options.warn(host_warning(usage, options.host_warn_percent));
  }

  typename D::Mutex mutex_;
  Context<D> context_;
  A autograd_;
  Tracker<D> tracker_;
  Outbound<D> outbound_;
  Inbound<D> inbound_;
  Choice<D> choice_;
  std::uint64_t run_ = 0;
  std::uint64_t pack_ = 0;
  std::uint64_t sequence_ = 0;
  std::atomic<std::int64_t> parcels_ = 0;  // alive now; only a hint if read without the lock
  std::atomic<bool> warned_ = false;
};

}  // namespace ferry
