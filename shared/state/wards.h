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
// Wards are brought ahead in the order of the last step. The order is a hint: if another ward is
// taken, it is brought then, and the order goes on behind it. What was brought for nobody is
// dropped at the end of the step.
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
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/error.h"
#include "shared/seam/invariant.h"
#include "shared/state/ward.h"

namespace ferry {

template <Device D>
class Wards {
 public:
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;

  Wards(D device, WardOptions options) : device_(std::move(device)), options_(std::move(options)) {}
  Wards(const Wards&) = delete;
  Wards& operator=(const Wards&) = delete;
  ~Wards() {
    while (!wards_.empty()) remove(wards_.begin()->first);
    // Another try, for the last time.
    for (const Storage& storage : std::exchange(quarantine_, {})) {
      protect(storage, device_.lane(Lane::kDeviceToHost));
      protect(storage, device_.lane(Lane::kHostToDevice));
    }
  }

  // Makes a ward of a storage that the current stream may use. The ward is taken: `written` sends
  // it to the host. If it throws, there is no ward.
  WardId add(const Storage& storage) {
    const WardId id{next_};
    Ward<D>& ward = wards_[id];
    try {
      ward.bytes = device_.bytes(storage);
      ward.owner = device_.owner(storage);
      ward.host = device_.allocate_host(Step::kHostAllocate, ward.bytes, options_.host_memory);
    } catch (...) {
      wards_.erase(id);
      throw;
    }
    ++next_;
    ward.storage = storage;
    ward.place = WardPlace::kTaken;
    ++statistics_.wards;
    statistics_.host_bytes += ward.bytes;
    count_arrival(ward);
    note_turn(id, ward);
    return id;
  }

  // Returns the ward's storage. The current stream may read and write it until `written` or
  // `give_back`.
  Storage take(WardId id) {
    Ward<D>& ward = at(id);
    const Stream user = device_.current_stream();
    if (ward.place == WardPlace::kHome) {
      bring_with_room(ward, user);
      log(WardDecisionKind::kBring, id, ward);
    }
    await(id, ward, user);
    if (!ward.owner || !(*ward.owner == user)) {
      device_.record_use(Step::kBroughtInUse, ward.storage, user);
    }
    note_turn(id, ward);
    ward.place = WardPlace::kTaken;
    log(WardDecisionKind::kTake, id, ward);
    if (ward.turn) turn_ = std::max(turn_, *ward.turn + 1);
    bring_ahead();
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
      protect(ward.storage, copies);
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
    const std::int64_t behind = limit(options_.behind_bytes);
    while (leaving_bytes_ > behind && leaving_.size() > 1) leave_first();
  }

  // The ward was only read, or what was written to it shall be lost. If the host has no bytes of
  // it, its storage stays.
  void give_back(WardId id) {
    Ward<D>& ward = at(id);
    require_taken(ward);
    log(WardDecisionKind::kGiveBack, id, ward);
    if (ward.is_current) {
      drop(ward);
    } else {
      ward.place = WardPlace::kKept;
    }
  }

  // Brings the next wards in the order of the last step, as many as the bound allows. It is only a
  // hint: an error is ignored, and `take` reports it.
  void bring_ahead() noexcept {
    cursor_ = std::max(cursor_, turn_);
    const std::int64_t ahead = limit(options_.ahead_bytes);
    if (ahead == 0) return;
    for (; cursor_ < order_.size(); ++cursor_) {
      const auto found = wards_.find(order_[cursor_]);
      if (found == wards_.end() || found->second.place != WardPlace::kHome) continue;
      Ward<D>& ward = found->second;
      if (ahead_bytes_ > 0 && ahead_bytes_ + ward.bytes > ahead) return;
      try {
        bring(ward, device_.current_stream());
      } catch (...) {
        return;
      }
      ++statistics_.ahead_count;
      log(WardDecisionKind::kAhead, found->first, ward);
    }
  }

  // Ends a step. The next one brings ahead in this one's order. With `keep_order` it brings in that
  // of the step before, as after a visit to all wards that no step repeats.
  void end_step(bool keep_order = false) noexcept {
    for (auto& [id, ward] : wards_) {
      if (ward.place == WardPlace::kBrought) let_unused_go(id, ward);
    }
    while (!leaving_.empty()) {
      Ward<D>& ward = at(leaving_.front());
      protect(ward.storage, device_.lane(Lane::kDeviceToHost));
      leave(ward);
    }
    if (!keep_order && !taken_.empty()) remember_order();
    taken_.clear();
    turn_ = cursor_ = 0;
    ++step_;
  }

  // The ward ends: its bytes are lost.
  void remove(WardId id) noexcept {
    Ward<D>& ward = at(id);
    if (ward.place == WardPlace::kLeaving) forget_leaving(id, ward);
    if (ward.place == WardPlace::kBrought) ahead_bytes_ -= ward.bytes;
    if (ward.place != WardPlace::kHome) {
      if (ward.place == WardPlace::kBrought) {
        protect(ward.storage, device_.lane(Lane::kHostToDevice));
      } else {
        protect(ward.storage, device_.lane(Lane::kDeviceToHost));
      }
      drop(ward);
    }
    return_host(ward);
    --statistics_.wards;
    statistics_.host_bytes -= ward.bytes;
    wards_.erase(id);
  }

  std::int64_t bytes(WardId id) const { return at(id).bytes; }
  WardPlace place(WardId id) const { return at(id).place; }
  const WardStatistics& statistics() const { return statistics_; }

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
      protect(storage, copies);
      throw;
    }
    ward.storage = std::move(storage);
    ward.owner = user;
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
    bool dropped = !leaving_.empty();
    while (!leaving_.empty()) leave_first();
    for (auto& [id, ward] : wards_) {
      if (ward.place != WardPlace::kBrought) continue;
      let_unused_go(id, ward);
      dropped = true;
    }
    return dropped;
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
        device_.wait(Step::kTakeBrought, user, ward.brought);
      }
    } catch (...) {
      if (leaving) {
        keep(id, ward);
      } else {
        protect(ward.storage, device_.lane(Lane::kHostToDevice));
        ahead_bytes_ -= ward.bytes;
        drop(ward);
      }
      throw;
    }
    if (leaving) {
      forget_leaving(id, ward);
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
      device_.wait(Step::kUnused, *ward.owner, ward.brought);
    } catch (...) {
      protect(ward.storage, device_.lane(Lane::kHostToDevice));
    }
    ahead_bytes_ -= ward.bytes;
    ++statistics_.unused_count;
    log(WardDecisionKind::kUnused, id, ward);
    drop(ward);
  }

  void drop(Ward<D>& ward) noexcept {
    statistics_.device_bytes -= ward.bytes;
    ward.place = WardPlace::kHome;
    ward.owner.reset();
    ward.storage = Storage();
  }

  // Call this before dropping a storage that `stream` may still use: its pool then waits.
  void protect(const Storage& storage, const Stream& stream) noexcept {
    try {
      device_.record_use(Step::kAbandon, storage, stream);
    } catch (...) {
      quarantine_.push_back(storage);
      ++statistics_.quarantined;
    }
  }

  void return_host(Ward<D>& ward) noexcept {
    std::vector<typename D::Event> events = {ward.returned, ward.brought};
    try {
      if (ward.unsure) {
        for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
          events.push_back(device_.record(Step::kAbandon, device_.lane(lane)));
        }
      }
    } catch (...) {
      lost_.push_back(std::move(ward.host));
      ++statistics_.quarantined;
      return;
    }
    device_.release_host(Step::kHostReturn, std::move(ward.host), events);
  }

  void note_turn(WardId id, Ward<D>& ward) {
    if (ward.step == step_) return;
    taken_.push_back(id);
    ward.step = step_;
  }

  void remember_order() noexcept {
    for (auto& [id, ward] : wards_) ward.turn.reset();
    order_ = std::move(taken_);
    for (std::size_t turn = 0; turn < order_.size(); ++turn) {
      const auto found = wards_.find(order_[turn]);
      if (found != wards_.end()) found->second.turn = turn;
    }
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
  const WardOptions options_;
  WardStatistics statistics_;
  std::map<WardId, Ward<D>> wards_;
  std::uint64_t next_ = 0;
  std::uint64_t step_ = 1;

  std::vector<WardId> taken_;  // in this step, in order
  std::vector<WardId> order_;  // of the last step
  std::size_t turn_ = 0;       // what comes before it in the order is not awaited any more
  std::size_t cursor_ = 0;     // what comes before it in the order has been brought, or need not be
  std::int64_t ahead_bytes_ = 0;

  std::deque<WardId> leaving_;  // by the order of their returns
  std::int64_t leaving_bytes_ = 0;

  std::vector<Storage> quarantine_;
  std::vector<typename D::HostBuffer> lost_;
};

}  // namespace ferry
