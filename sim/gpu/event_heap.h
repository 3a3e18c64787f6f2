// The pending events of a simulation: a 4-ary array heap with at most one event for each slot.
//
// A slot stands for something with at most one event outstanding (a hardware engine, a stream that
// waits for the host). Order is (time, order): `order` is the class and the sequence number that
// break ties, so two runs agree to the bit. An event may be moved (a copy whose bandwidth changed),
// so the heap remembers where each slot's event is.
//
// The common step takes the earliest event and schedules the same engine again. So pop() leaves a
// hole at the root, and the next push() falls in: one walk down the heap instead of two.
//
// Few events are pending at once; for those an array heap beats ladders, calendars and pairing
// heaps, and four children to a node beat two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ferry::sim {

struct Event {
  std::int64_t time;
  std::uint64_t order;  // breaks ties in time; unique
  std::uint32_t slot;

  bool before(const Event& other) const {
    return time != other.time ? time < other.time : order < other.order;
  }
};

class EventHeap {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  void add_slots(std::size_t slots) { place_.resize(std::max(place_.size(), slots), 0); }

  bool empty() const { return heap_.size() == (hole_ ? 1 : 0); }

  // The earliest pending time; kNever if nothing is pending.
  std::int64_t next_time() const {
    if (!hole_) return heap_.empty() ? kNever : heap_.front().time;
    std::int64_t earliest = kNever;
    const std::size_t end = std::min(heap_.size(), 1 + kChildren);
    for (std::size_t i = 1; i < end; ++i) earliest = std::min(earliest, heap_[i].time);
    return earliest;
  }

  // Requires that it is not empty.
  Event pop() {
    fill_hole();
    hole_ = true;
    return heap_.front();
  }

  // Requires that the slot has no event pending.
  void push(const Event& event) {
    if (hole_) {
      hole_ = false;
      sift_down(0, event);
    } else {
      heap_.push_back(event);
      sift_up(heap_.size() - 1, event);
    }
  }

  // Requires a pending event of the slot, which now happens at another time.
  void move(std::uint32_t slot, std::int64_t time) {
    fill_hole();
    const std::size_t at = place_[slot];
    Event event = heap_[at];
    const bool later = time > event.time;
    event.time = time;
    later ? sift_down(at, event) : sift_up(at, event);
  }

 private:
  static constexpr std::size_t kChildren = 4;

  void fill_hole() {
    if (!hole_) return;
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
  }

  void put(std::size_t at, const Event& event) {
    heap_[at] = event;
    place_[event.slot] = static_cast<std::uint32_t>(at);
  }

  void sift_up(std::size_t at, const Event& event) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / kChildren;
      if (!event.before(heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, event);
  }

  void sift_down(std::size_t at, const Event& event) {
    const std::size_t size = heap_.size();
    for (std::size_t first = at * kChildren + 1; first < size; first = at * kChildren + 1) {
      std::size_t least = first;
      const std::size_t end = std::min(size, first + kChildren);
      for (std::size_t i = first + 1; i < end; ++i) {
        if (heap_[i].before(heap_[least])) least = i;
      }
      if (!heap_[least].before(event)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, event);
  }

  std::vector<Event> heap_;  // the root is dead while hole_ is true
  std::vector<std::uint32_t> place_;
  bool hole_ = false;
};

}  // namespace ferry::sim
