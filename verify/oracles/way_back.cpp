#include "verify/oracles/way_back.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ferry::verify {

using Back = Parcel::Back;

void WayBack::sent(const std::shared_ptr<Parcel>& parcel) {
  parcels_[parcel->sequence] = parcel;
  expect(DecisionKind::kPack, *parcel);
}

WayBack::Task* WayBack::know(std::uint64_t next) {
  Task* const now = task();
  if (now && !std::exchange(now->known, true)) now->began = next;
  return now;
}

TargetRef WayBack::unpacks(WatchedSave& save, std::uint64_t next, StreamId consumer) {
  Task* const now = know(next);
  const std::shared_ptr<Parcel>& parcel = save.parcel;
  TargetRef target;
  save.task = now ? std::optional(now->id) : std::nullopt;
  parcel->task = save.task;
  if (parcel->source.expired()) {
    if (!parcel->target) parcel->target = std::make_shared<Target>();
    target = parcel->target;
    releases_.use(target, consumer, now ? &now->ends : nullptr);
    const bool more = now && pending(*parcel, now->id) > 0;
    if (more && host_.limit(options_.hold_bytes) > 0) {
      hold(parcel, *now);
    } else {
      let_go(*parcel, now);
    }
  }
  expect(DecisionKind::kUnpack, *parcel);
  return target;
}

std::size_t WayBack::pending(const Parcel& parcel, std::optional<std::uint64_t> task) {
  const auto is_to_come = [&](const WatchedSave* save) { return !task || save->task != task; };
  return static_cast<std::size_t>(
      std::count_if(parcel.saves.begin(), parcel.saves.end(), is_to_come));
}

void WayBack::hold(const std::shared_ptr<Parcel>& parcel, Task& task) {
  if (parcel->back == Back::kHeld || parcel->back == Back::kHeldLarge) return;
  const bool is_large = parcel->bytes() > host_.limit(options_.hold_bytes);
  parcel->back = is_large ? Back::kHeldLarge : Back::kHeld;
  task.left.push_back(parcel);
  let_go_beyond_bounds(task);
}

// One storage that exceeds the limit may be held, in addition to the others.
void WayBack::let_go_beyond_bounds(Task& task) {
  const auto let_last_go = [&](Back why) {
    const auto last = std::find_if(parcels_.rbegin(), parcels_.rend(),
                                   [why](const auto& each) { return each.second->back == why; });
    let_go(*last->second, &task);
  };
  const auto is_large = [](const auto& each) { return each.second->back == Back::kHeldLarge; };
  while (std::count_if(parcels_.begin(), parcels_.end(), is_large) > 1) {
    let_last_go(Back::kHeldLarge);
  }
  while (bytes_back(Back::kHeld) > host_.limit(options_.hold_bytes)) let_last_go(Back::kHeld);
}

bool WayBack::looks_ahead(std::uint64_t next) {
  const bool at_all = options_.prefetch_bytes != 0 || options_.prefetch_tensors != kUnlimited;
  return at_all && !parcels_.empty() && know(next);
}

void WayBack::look_ahead(const WatchedSave& save) {
  Task& now = *task();
  const auto [known, first] = now.looked.try_emplace(save.run, save.sequence);
  std::uint64_t& looked = known->second;
  looked = std::min(looked, save.sequence);
  for (auto next = parcels_.lower_bound(looked); next != parcels_.begin();) {
    Parcel& parcel = *(--next)->second;
    const bool is_far =
        save.sequence - parcel.sequence > static_cast<std::uint64_t>(options_.prefetch_tensors);
    if (parcel.run != save.run || is_far) return;
    if (is_wanted(parcel, now)) {
      const std::int64_t bytes = bytes_back(Back::kAhead) + parcel.bytes();
      if (bytes > host_.limit(options_.prefetch_bytes)) return;
      parcel.back = Back::kAhead;
      parcel.target = std::make_shared<Target>();
      now.left.push_back(next->second);
      expect(DecisionKind::kPrefetch, parcel);
    }
    looked = parcel.sequence;
  }
}

// A storage that was written since is not wanted: its unpack will fail.
bool WayBack::is_wanted(const Parcel& parcel, const Task& task) const {
  const sim::Version counter = parcel.counter.lock();
  return parcel.back == Back::kNo && parcel.source.expired() && pending(parcel, task.id) > 0 &&
         (!counter || counter->value == parcel.version);
}

std::int64_t WayBack::bytes_back(Back why) const {
  std::int64_t bytes = 0;
  for (const auto& [sequence, parcel] : parcels_) {
    if (parcel->back == why) bytes += parcel->bytes();
  }
  return bytes;
}

void WayBack::let_go(Parcel& parcel, Task* task) {
  if (!parcel.target) return;
  parcel.back = Back::kNo;
  expect(DecisionKind::kRelease, parcel);
  releases_.let_go(std::exchange(parcel.target, nullptr), task ? &task->ends : nullptr);
}

void WayBack::drops(WatchedSave& save) {
  Parcel& parcel = *save.parcel;
  std::erase(parcel.saves, &save);
  const auto goes_on = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) {
    return task.id == parcel.task && task.known && !task.ended;
  });
  const bool is_held = parcel.back == Back::kHeld || parcel.back == Back::kHeldLarge;
  if (parcel.saves.empty() || (is_held && pending(parcel, parcel.task) == 0)) {
    let_go(parcel, goes_on == tasks_.end() ? nullptr : &*goes_on);
  }
  if (!parcel.saves.empty()) return;
  expect(DecisionKind::kReturn, parcel);
  parcels_.erase(parcel.sequence);
}

void WayBack::let_go_of_task() {
  Task& ends = tasks_.back();
  if (!ends.known || std::exchange(ends.ended, true)) return;
  const auto around = std::find_if(std::next(tasks_.rbegin()), tasks_.rend(),
                                   [](const Task& task) { return task.known; });
  releases_.task_ends(ends.ends);
  for (const std::weak_ptr<Parcel>& each : ends.left) {
    const std::shared_ptr<Parcel> parcel = each.lock();
    if (!parcel) continue;
    if (around != tasks_.rend() && parcel->sequence < ends.began) {
      around->left.push_back(each);
    } else {
      let_go(*parcel, &ends);
    }
  }
  releases_.task_ended(ends.ends);
}

void WayBack::expect(DecisionKind kind, const Parcel& parcel) {
  decisions_.push_back({kind, parcel.run, parcel.pack, parcel.bytes()});
}

}  // namespace ferry::verify
