// Copies to the host, and the forward stash that keeps their sources alive.
//
//   compute   produce x ──● produced            ┌─ evict ── x's block may be reused
//                         └──── offload ────┐   │
//   d2h       ... ────────── after producer ▼ D2H(x) ──● offloaded
//
// The stash is a window over the order of packing, bounded in packs and in bytes. When backward
// begins, sources that it needs only much later leave too. Before a source leaves, the stream of
// its pool is told to wait for the copy, so the pool may reuse the block at once. The host does not
// wait, unless it is the host that computes: then the thread waits after the core's lock is
// released, and the source is dropped after that. If a parcel dies earlier, it abandons its source:
// the pool waits for the copy, and no compute stream stalls for a copy that nobody reads.
//
// A program may give a storage other memory during the copy (resize_, set_data_ptr). The device
// keeps the old bytes for the copy. The parcel is marked, and its next unpack throws.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/offload/context.h"
#include "shared/seam/invariant.h"

namespace ferry {

// Host bytes that no copy uses yet. Never allocate them under the core's lock: pinning memory is
// slow, and at the memory limit the thread waits for copies.
template <Device D>
class HostRoom {
 public:
  HostRoom(D& device, std::int64_t bytes, HostMemory kind)
      : device_(device), host_(device.allocate_host(Step::kHostAllocate, bytes, kind)) {}
  HostRoom(const HostRoom&) = delete;
  HostRoom& operator=(const HostRoom&) = delete;
  ~HostRoom() {
    if (host_) device_.release_host(Step::kHostReturn, *std::move(host_), {});
  }
  typename D::HostBuffer take() {
    invariant(host_.has_value(), "host bytes are given to one copy", Step::kOffload);
    typename D::HostBuffer taken = *std::move(host_);
    host_.reset();
    return taken;
  }

 private:
  D& device_;
  std::optional<typename D::HostBuffer> host_;
};

template <Device D>
class Outbound {
 public:
  using ParcelRef = std::shared_ptr<Parcel<D>>;
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;

  explicit Outbound(Context<D>& context) : context_(context) {}

  // Copies the bytes parcel.extent of `source`. If it throws, nothing is left of the parcel.
  void send(const ParcelRef& parcel, const Storage& source, HostRoom<D>& room) {
    invariant(!context_.device.exists(parcel->kept), "a parcel is sent once", Step::kOffload);
    invariant(parcel->reloads.empty(), "nothing comes back before it is sent", Step::kOffload);
    const Stream compute = parcel->packed_on;
    const Stream copies = context_.copy_stream(Lane::kDeviceToHost, compute);
    const bool stays =
        context_.rules.keeps_source() && (!(copies == compute) || !at_home(source, compute));
    if (stays) {
      const bool is_alone = window_.emplace(parcel->sequence, parcel).second;
      invariant(is_alone, "no two sources have one place in the window", Step::kEvict);
    }
    try {
      copy(parcel, source, room, compute, copies);
    } catch (...) {
      if (stays) window_.erase(parcel->sequence);
      throw;
    }
    context_.bounds.sent(parcel->extent.bytes());
    context_.statistics.offloaded_count += 1;
    context_.statistics.offloaded_bytes += parcel->extent.bytes();
    if (!stays) return;
    parcel->kept_bytes = context_.device.bytes(source);
    hold(*parcel, source);
  }

  // Evicts the sources that are outside the window when the pack with this sequence number comes.
  void evict_old(std::uint64_t sequence, Bin<D>& bin) {
    if (!context_.rules.bounds_stash()) return;
    const auto packs = static_cast<std::uint64_t>(context_.options.window_tensors);
    while (!window_.empty() && sequence - window_.begin()->first >= packs) evict_first(bin);
  }

  // Evicts sources that were packed long before the save `sequence`, which backward unpacks now.
  void evict_far(std::uint64_t sequence, Bin<D>& bin) {
    if (!context_.rules.bounds_stash()) return;
    const auto packs = static_cast<std::uint64_t>(context_.options.prefetch_tensors);
    while (!window_.empty() && window_.begin()->first + packs < sequence) evict_first(bin);
  }

  // Evicts until a source of `bytes` fits. A source larger than the window is alone in it.
  void evict_for(std::int64_t bytes, Bin<D>& bin) {
    if (!context_.rules.bounds_stash()) return;
    while (!window_.empty() && context_.statistics.forward_stash_bytes >
                                   std::max<std::int64_t>(context_.bounds.window() - bytes, 0)) {
      evict_first(bin);
    }
  }

  // The parcel is no longer needed: drops its source, even if the copy is still running.
  void forget(Parcel<D>& parcel, Bin<D>& bin) noexcept {
    if (!context_.device.exists(parcel.kept)) return;
    const Stream copies = context_.copy_stream(Lane::kDeviceToHost, parcel.packed_on);
    context_.protect(parcel.kept, copies);
    bin.drop(leave(parcel));
  }

  // Gives the host bytes back to the pool, which reuses them only after the copies that use them.
  // If no event marks the end of a copy back yet, one is recorded now.
  void return_host(Parcel<D>& parcel) noexcept {
    std::vector<typename D::Event> events;
    try {
      if (context_.rules.gates_host_bytes()) {
        events.push_back(parcel.offloaded);
        for (const auto& [stream, event] : parcel.reloads) {
          events.push_back(event ? *event : context_.device.record(Step::kAbandon, stream));
        }
      }
    } catch (...) {
      lost_.push_back(std::move(parcel.host));
      ++context_.statistics.quarantined;
      return;
    }
    context_.device.release_host(Step::kHostReturn, std::move(parcel.host), events);
  }

  // The thread has waited for the copy of an evicted source. If the wait failed, the source goes
  // back into the window for another try, unless nobody needs it any more.
  void waited(HostWait<D>&& wait, Bin<D>& bin) noexcept {
    invariant(context_.device.exists(wait.storage), "a source stays until its copy was waited for",
              Step::kEvict);
    if (wait.failed) {
      try {
        if (wait.evicted->saves > 0) {
          window_.emplace(wait.evicted->sequence, wait.evicted);
          return hold(*wait.evicted, wait.storage);
        }
      } catch (...) {  // no memory for its entry
      }
      context_.protect(wait.storage, wait.copies);
    }
    bin.drop(std::move(wait.storage));
  }

  bool empty() const { return window_.empty(); }

 private:
  // True if the storage returns to the pool of `stream`.
  bool at_home(const Storage& source, const Stream& stream) {
    const auto owner = context_.device.owner(source);
    return owner && *owner == stream;
  }

  // If it throws, either no copy runs or its source is protected, and the host bytes are returned.
  void copy(const ParcelRef& parcel, const Storage& source, HostRoom<D>& room,
            const Stream& compute, const Stream& copies) {
    D& device = context_.device;
    if (!(copies == compute)) {
      device.wait(Step::kOffloadAfterProducer, copies, device.record(Step::kProduced, compute));
    }
    parcel->host = room.take();
    try {
      device.offload(Step::kOffload, source, parcel->extent.begin, parcel->host, copies);
    } catch (...) {
      device.release_host(Step::kHostReturn, std::move(parcel->host), {});
      throw;
    }
    try {
      parcel->offloaded = device.record(Step::kOffloaded, copies);
    } catch (...) {
      // The copy is running, but no event marks its end. The pool can wait for it; the host bytes
      // need a later record.
      context_.protect(source, copies);
      parcel->reloads.emplace_back(copies, std::nullopt);
      return_host(*parcel);
      throw;
    }
  }

  // Keeps the source. The window already has the entry.
  void hold(Parcel<D>& parcel, const Storage& source) {
    parcel.kept = source;
    OffloadStatistics& statistics = context_.statistics;
    statistics.forward_stash_bytes += parcel.kept_bytes;
    statistics.forward_stash_peak_bytes =
        std::max(statistics.forward_stash_peak_bytes, statistics.forward_stash_bytes);
  }

  // If a wait throws, the entry is still there for another try.
  void evict_first(Bin<D>& bin) {
    const ParcelRef parcel = window_.begin()->second;
    D& device = context_.device;
    invariant(device.exists(parcel->kept), "a source in the window is kept", Step::kEvict);
    const Stream copies = context_.copy_stream(Lane::kDeviceToHost, parcel->packed_on);
    if (device.address(parcel->kept) != parcel->key.address) parcel->replaced = true;
    if (at_home(parcel->kept, parcel->packed_on) || !context_.rules.waits_on_owner()) {
      const Stream waiting =
          context_.rules.waits_on_owner() ? parcel->packed_on : context_.current();
      if (device.is_host(waiting)) {
        bin.waits.push_back({Step::kEvict, waiting, parcel->offloaded, copies, parcel});
      } else {
        device.wait(Step::kEvict, waiting, parcel->offloaded);
      }
      ++context_.statistics.compute_waits;
    } else {
      // The pool belongs to another stream, or is unknown: two streams may still use the block.
      device.record_use(Step::kAbandon, parcel->kept, copies);
      device.record_use(Step::kAbandon, parcel->kept, parcel->packed_on);
    }
    context_.log(DecisionKind::kEvict, *parcel);
    Storage source = leave(*parcel);
    if (!bin.waits.empty() && bin.waits.back().evicted == parcel) {
      bin.waits.back().storage = std::move(source);
    } else {
      bin.drop(std::move(source));
    }
  }

  Storage leave(Parcel<D>& parcel) noexcept {
    std::int64_t& bytes = context_.statistics.forward_stash_bytes;
    bytes -= parcel.kept_bytes;
    invariant(bytes >= 0, "no more bytes leave the window than it has", Step::kEvict);
    const bool was_there = window_.erase(parcel.sequence) == 1;
    invariant(was_there, "a kept source has its place in the window", Step::kEvict);
    invariant(bytes == 0 || !window_.empty(), "an empty window has no bytes", Step::kEvict);
    return std::exchange(parcel.kept, Storage());
  }

  Context<D>& context_;
  std::map<std::uint64_t, ParcelRef> window_;  // by order of packing
  std::vector<typename D::HostBuffer> lost_;
};

}  // namespace ferry
