// The state of a training on the host: wards that visit the device in each step.
//
//   compute   ──● vacant                        ┌─ take ── update ──● updated      ┌─ leave
//               └─ bring                        │                   └─ return      │
//                  after vacant                 │                      after       │
//   h2d       ──── after returned ─ bring ──● brought                  updated     │
//   d2h       ──────────────────────────────────────────────────────── return ──● returned
//
// A ward is brought into a block of its user's pool. The copy waits for what its user was given so
// far, because the pool may hand out a block whose last work is not done yet. After an update the
// bytes are copied back to where they came from. The storage is dropped when its pool's stream has
// been told to wait for that copy; until then it counts as *behind*. In place of a wait at the end
// of a step, the pool itself waits (abandon), so that no computing stalls.
//
// Wards are brought ahead in the order in which they were taken before (takes.h). The order is a
// hint: if another ward is taken, it is brought then, and what is not expected any more is dropped.
//
// Calls come one at a time: the caller orders them, as an optimizer's are. The calling thread may
// block, but only in a wait of a stream that stands for it (Device::is_host).
//
// Errors leave no ward half changed. If there is no device memory to bring a ward, those that are
// behind or ahead make room first. If a copy to the host fails, the ward keeps its storage, and the
// next `written` tries again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "shared/seam/invariant.h"
#include "shared/state/safe_drop.h"
#include "shared/state/ward.h"

namespace ferry {

template <Device D>
class Wards {
 public:
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;

  Wards(D device, WardOptions options) : device_(std::move(device)), options_(std::move(options)) {}
  ~Wards() {
    while (!wards_.empty()) remove(wards_.begin()->first);
  }

  // Makes a ward of a storage that the current stream may use. The ward is taken: `written` sends
  // it to the host. If it throws, there is no ward.
  WardId add(const Storage& storage) { return add(storage, host_for(storage)); }
  // The same in two calls, because page-locked memory takes its time.
  typename D::HostBuffer host_for(const Storage& storage) {
    return device_.allocate_host(Step::kHostAllocate, device_.bytes(storage), options_.host_memory);
  }
  WardId add(const Storage& storage, typename D::HostBuffer&& host) {
    const WardId id{next_};
    Ward<D>& ward = wards_[id];
    ++next_;
    ward.bytes = device_.bytes(storage);
    ward.owner = device_.owner(storage);
    ward.host = std::move(host);
    ward.storage = storage;
    ward.place = WardPlace::kTaken;
    ++statistics_.wards;
    statistics_.host_bytes += ward.bytes;
    count_arrival(ward);
    note_take(id);
    return id;
  }

  // Returns the ward's storage. The current stream may read and write it until `written` or
  // `give_back`.
  Storage take(WardId id) {
    Ward<D>& ward = at(id);
    const Stream user = device_.current_stream();
    if (ward.place == WardPlace::kBrought && ward.was_used && !(*ward.owner == user)) {
      // Only the stream of its pool comes after its last user.
      let_unused_go(id, ward);
    }
    if (ward.place == WardPlace::kHome) {
      bring_with_room(ward, user);
      log(WardDecisionKind::kBring, id, ward);
    }
    await(id, ward, user);
    if (!ward.owner || !(*ward.owner == user)) use_elsewhere(ward, user);
    note_take(id);
    ward.place = WardPlace::kTaken;
    log(WardDecisionKind::kTake, id, ward);
    bring_ahead();
    return ward.storage;
  }

  // Returns the storage of a taken ward that nobody has written. The current stream may read it,
  // too.
  Storage share(WardId id) {
    Ward<D>& ward = at(id);
    require_taken(ward);
    const Stream user = device_.current_stream();
    if (!ward.owner || !(*ward.owner == user)) {
      device_.wait(Step::kTakeBrought, user, there(ward));
      use_elsewhere(ward, user);
    }
    return ward.storage;
  }

  // The current stream has written the ward: its bytes go to the host.
  void written(WardId id) {
    Ward<D>& ward = at(id);
    require_taken(ward);
    const Stream copies = device_.lane(Lane::kDeviceToHost);
    ward.is_current = false;
    device_.wait(Step::kReturnAfterUpdated, copies,
                 device_.record(Step::kUpdated, device_.current_stream()));
    device_.offload(Step::kReturn, ward.storage, 0, ward.host, copies);
    try {
      ward.returned = device_.record(Step::kReturned, copies);
    } catch (...) {
      ward.unsure = true;
      ends_.protect(ward.storage, copies);
      throw;
    }
    ward.is_current = true;
    ward.unsure = false;
    ward.place = WardPlace::kLeaving;
    leaving_.push_back(id);
    leaving_bytes_ += ward.bytes;
    ++statistics_.returned_count;
    statistics_.returned_bytes += ward.bytes;
    log(WardDecisionKind::kReturn, id, ward);
    while (leaving_bytes_ > limit(options_.behind_bytes) && leaving_.size() > 1) leave_first();
  }

  // The ward is not used any more. What was written, if anything, is lost. If the host has no bytes
  // of it, its storage stays.
  void give_back(WardId id, bool was_written) {
    Ward<D>& ward = at(id);
    require_taken(ward);
    if (!was_written && may_stay(id, ward)) {
      log(WardDecisionKind::kExpected, id, ward);
      ward.place = WardPlace::kBrought;
      ward.was_used = true;
      ahead_bytes_ += ward.bytes;
      return;
    }
    log(WardDecisionKind::kGiveBack, id, ward);
    if (ward.is_current) {
      drop(ward);
    } else {
      ward.place = WardPlace::kKept;
    }
  }

  // Brings the next wards in the expected order, as many as the bound allows. It is only a hint: an
  // error is ignored, and `take` reports it.
  void bring_ahead() noexcept {
    const std::int64_t ahead = limit(options_.ahead_bytes);
    if (ahead == 0) return;
    if (std::exchange(surprised_, false)) {
      cursor_ = takes_.next();
      drop_brought(expected_soon());
    }
    for (cursor_ = std::max(cursor_, takes_.next()); cursor_ < takes_.end(); ++cursor_) {
      if (takes_.at(cursor_) == Takes::kMark) return;
      const auto found = wards_.find(takes_.at(cursor_));
      if (found == wards_.end()) continue;
      Ward<D>& ward = found->second;
      if (ward.place == WardPlace::kTaken) return;  // it may have to be brought once more
      if (ward.place == WardPlace::kBrought) {
        const bool is_for_before = ward.expected_at >= takes_.next() && ward.expected_at < cursor_;
        if (is_for_before) return;
        ward.expected_at = cursor_;
      }
      if (ward.place != WardPlace::kHome) continue;
      if (ahead_bytes_ > 0 && ahead_bytes_ + ward.bytes > ahead) return;
      try {
        bring(ward, device_.current_stream());
      } catch (...) {
        return;
      }
      ward.expected_at = cursor_;
      ++statistics_.ahead_count;
      log(WardDecisionKind::kAhead, found->first, ward);
    }
  }

  // Ends a step: nothing is brought ahead across it before the next call of bring_ahead. With
  // `keep_order` the order of its takes is forgotten, as after a visit to all wards that no step
  // repeats.
  void end_step(bool keep_order = false) noexcept {
    drop_brought();
    leave_all();
    takes_.mark(keep_order);
    cursor_ = takes_.next();
    surprised_ = false;
  }

  // Drops what is behind. Its pools wait for the copies.
  void leave_all() noexcept {
    while (!leaving_.empty()) {
      Ward<D>& ward = at(leaving_.front());
      ends_.protect(ward.storage, device_.lane(Lane::kDeviceToHost));
      leave(ward);
    }
  }

  // The ward ends: its bytes are lost.
  void remove(WardId id) noexcept {
    Ward<D>& ward = at(id);
    if (ward.place == WardPlace::kLeaving) forget_leaving(id, ward);
    if (ward.place == WardPlace::kBrought) ahead_bytes_ -= ward.bytes;
    if (ward.place != WardPlace::kHome) {
      if (ward.place == WardPlace::kBrought) {
        ends_.protect(ward.storage, device_.lane(Lane::kHostToDevice));
      } else {
        ends_.protect(ward.storage, device_.lane(Lane::kDeviceToHost));
      }
      drop(ward);
    }
    ends_.return_host(std::move(ward.host), {ward.returned, ward.brought}, ward.unsure);
    --statistics_.wards;
    statistics_.host_bytes -= ward.bytes;
    wards_.erase(id);
  }

  WardPlace place(WardId id) const { return at(id).place; }
  WardStatistics statistics() const { return statistics_; }
  // Returns how many storages and host buffers could not be released safely, and stay.
  std::int64_t quarantined() const { return ends_.count(); }

 private:
  std::int64_t limit(const std::optional<std::int64_t>& chosen) const {
    return chosen.value_or(std::min(kMostWardBytes, statistics_.host_bytes / kWardParts));
  }

  Ward<D>& at(WardId id) {
    const auto found = wards_.find(id);
    invariant(found != wards_.end(), "a ward is used from its `add` to its `remove`");
    return found->second;
  }
  const Ward<D>& at(WardId id) const { return const_cast<Wards*>(this)->at(id); }

  static void require_taken(const Ward<D>& ward) {
    invariant(ward.place == WardPlace::kTaken, "a ward is taken before it is written or given back",
              Step::kReturn);
  }

  // If it throws, the ward is home and no copy runs that anything relies on.
  void bring(Ward<D>& ward, const Stream& user) {
    const Stream copies = device_.lane(Lane::kHostToDevice);
    Storage storage = device_.allocate(Step::kBringAllocate, ward.bytes, user);
    device_.wait(Step::kBringAfterVacant, copies, device_.record(Step::kVacant, user));
    device_.wait(Step::kBringAfterReturned, copies, ward.returned);
    device_.reload(Step::kBring, ward.host, storage, copies);
    try {
      ward.brought = device_.record(Step::kBrought, copies);
    } catch (...) {
      ward.unsure = true;
      ends_.protect(storage, copies);
      throw;
    }
    ward.storage = std::move(storage);
    ward.owner = user;
    ward.is_there_since_return = false;
    ward.was_used = ward.was_elsewhere = false;
    ward.place = WardPlace::kBrought;
    ahead_bytes_ += ward.bytes;
    ++statistics_.brought_count;
    statistics_.brought_bytes += ward.bytes;
    count_arrival(ward);
  }

  void bring_with_room(Ward<D>& ward, const Stream& user) {
    try {
      return bring(ward, user);
    } catch (...) {
      if (!make_room()) throw;
    }
    bring(ward, user);
  }

  // Drops what is behind and ahead. Returns false if there was nothing.
  bool make_room() {
    const bool some = !leaving_.empty();
    while (!leaving_.empty()) leave_first();
    return drop_brought() || some;
  }

  // Drops what is brought, except these. Returns false if there was nothing.
  bool drop_brought(const std::set<WardId>& except = {}) noexcept {
    bool some = false;
    for (auto& [id, ward] : wards_) {
      if (ward.place != WardPlace::kBrought || except.contains(id)) continue;
      let_unused_go(id, ward);
      some = true;
    }
    return some;
  }

  // Orders the user after the copy that the ward is part of. If that copy has failed, the error
  // says so, and the ward is where its bytes are: at home, or kept.
  void await(WardId id, Ward<D>& ward, const Stream& user) {
    const bool leaving = ward.place == WardPlace::kLeaving;
    if (ward.place == WardPlace::kKept && ward.unsure) {
      const Stream copies = device_.lane(Lane::kDeviceToHost);
      device_.wait(Step::kTakeReturned, user, device_.record(Step::kReturned, copies));
      ward.unsure = false;
    }
    if (!leaving && ward.place != WardPlace::kBrought) return;
    try {
      if (leaving) {
        device_.wait(Step::kTakeReturned, user, ward.returned);
      } else {
        device_.wait(Step::kTakeBrought, user, there(ward));
      }
    } catch (...) {
      if (leaving) {
        keep(id, ward);
      } else {
        ends_.protect(ward.storage, device_.lane(Lane::kHostToDevice));
        ahead_bytes_ -= ward.bytes;
        drop(ward);
      }
      throw;
    }
    if (leaving) {
      forget_leaving(id, ward);
      ward.is_there_since_return = true;
    } else {
      ahead_bytes_ -= ward.bytes;
    }
    ward.place = WardPlace::kKept;  // whatever fails now, its bytes are here
  }

  // Tells the pool of the first ward that leaves to wait for its copy, and drops the storage.
  void leave_first() {
    const WardId id = leaving_.front();
    Ward<D>& ward = at(id);
    try {
      if (ward.owner) {
        device_.wait(Step::kLeave, *ward.owner, ward.returned);
      } else {
        device_.record_use(Step::kAbandon, ward.storage, device_.lane(Lane::kDeviceToHost));
      }
    } catch (...) {
      keep(id, ward);
      throw;
    }
    leave(ward);
  }

  // Drops the storage of the first ward that leaves. Its pool knows of the copy.
  void leave(Ward<D>& ward) noexcept {
    const WardId id = leaving_.front();
    leaving_.pop_front();
    leaving_bytes_ -= ward.bytes;
    log(WardDecisionKind::kLeave, id, ward);
    drop(ward);
  }

  void forget_leaving(WardId id, Ward<D>& ward) noexcept {
    std::erase(leaving_, id);
    leaving_bytes_ -= ward.bytes;
  }

  // A wait for the copy to the host has failed, and perhaps the copy. The device keeps the bytes.
  void keep(WardId id, Ward<D>& ward) noexcept {
    forget_leaving(id, ward);
    ward.place = WardPlace::kKept;
    ward.is_current = false;
    ward.unsure = true;
  }

  void let_unused_go(WardId id, Ward<D>& ward) noexcept {
    try {
      device_.wait(Step::kUnused, *ward.owner, there(ward));
    } catch (...) {
      ends_.protect(ward.storage, device_.lane(Lane::kHostToDevice));
    }
    ahead_bytes_ -= ward.bytes;
    ++statistics_.unused_count;
    log(WardDecisionKind::kUnused, id, ward);
    drop(ward);
  }

  void use_elsewhere(Ward<D>& ward, const Stream& user) {
    device_.record_use(Step::kBroughtInUse, ward.storage, user);
    ward.was_elsewhere = true;
  }

  // After it the bytes of a ward that is brought or taken are there.
  static const typename D::Event& there(const Ward<D>& ward) {
    return ward.is_there_since_return ? ward.returned : ward.brought;
  }

  void drop(Ward<D>& ward) noexcept {
    statistics_.device_bytes -= ward.bytes;
    ward.place = WardPlace::kHome;
    ward.owner.reset();
    ward.storage = Storage();
  }

  void note_take(WardId id) { surprised_ = !takes_.took(id) || surprised_; }

  // Returns the wards that are expected next, as many as the bound ahead allows on the device.
  std::set<WardId> expected_soon() const {
    return takes_.soon(limit(options_.ahead_bytes), [this](WardId id) {
      const auto found = wards_.find(id);
      return found == wards_.end() ? 0 : found->second.bytes;
    });
  }

  // True if a ward that is given back can be what is brought for the next one to take it, on the
  // stream of its pool. If it was used on another stream, the next one would not wait for that.
  bool may_stay(WardId id, const Ward<D>& ward) const {
    if (!ward.is_current || !ward.owner || ward.was_elsewhere) return false;
    const std::int64_t ahead = limit(options_.ahead_bytes);
    if (ahead == 0 || (ahead_bytes_ > 0 && ahead_bytes_ + ward.bytes > ahead)) return false;
    return expected_soon().contains(id);
  }

  void count_arrival(const Ward<D>& ward) {
    statistics_.device_bytes += ward.bytes;
    statistics_.device_peak_bytes =
        std::max(statistics_.device_peak_bytes, statistics_.device_bytes);
  }

  void log(WardDecisionKind kind, WardId id, const Ward<D>& ward) {
    if (options_.log) options_.log({kind, id, ward.bytes});
  }

  D device_;
  SafeDrop<D> ends_{device_};
  const WardOptions options_;
  WardStatistics statistics_;
  std::map<WardId, Ward<D>> wards_;
  std::uint64_t next_ = 0;

  Takes takes_;
  std::size_t cursor_ = 0;  // in takes_: what is expected before it was brought, or need not be
  bool surprised_ = false;  // since the last look ahead, another ward was taken than was expected
  std::int64_t ahead_bytes_ = 0;

  std::deque<WardId> leaving_;  // by the order of their returns
  std::int64_t leaving_bytes_ = 0;
};

}  // namespace ferry
