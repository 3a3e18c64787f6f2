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
#include <utility>
#include <vector>

namespace ferry::sim {

struct alignas(32) Event {
  std::int64_t time = std::numeric_limits<std::int64_t>::max();
  std::uint64_t order = 0;  // breaks ties in time; unique
  std::uint32_t slot = 0;

  bool before(const Event& other) const { return key() < other.key(); }

 private:
  __extension__ using Key = unsigned __int128;  // compared without a branch; no time is negative
  Key key() const { return static_cast<Key>(time) << 64 | order; }
};

class EventHeap {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  void add_slots(std::size_t slots) {
    if (slots <= place_.size()) return;
    place_.resize(slots);
    heap_.resize(slots + kChildren + 1);
  }

  std::size_t size() const { return count_ - (first_ != 0 ? 1 : 0); }

  // The earliest pending time; kNever if nothing is pending.
  std::int64_t next_time() const { return heap_[first_].time; }

  // Requires that it is not empty. What it returns stays until the next call.
  const Event& pop() {
    fill_hole();
    first_ = least_of(1);
    return heap_[0];
  }

  // Requires that the slot has no event pending.
  void push(const Event& event) {
    if (first_ != 0) {
      fall_in(event);
    } else {
      sift_up(count_++, event);
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
    if (first_ == 0) return;
    const Event last = heap_[--count_];
    heap_[count_].time = kNever;
    if (count_ > 0) fall_in(last);
    first_ = 0;
  }

  // Fills the hole at the root.
  void fall_in(const Event& event) {
    const std::size_t least = std::exchange(first_, 0);
    if (event.before(heap_[least])) return put(0, event);
    put(0, heap_[least]);
    sift_down(least, event);
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
    for (std::size_t first = at * kChildren + 1; first < count_; first = at * kChildren + 1) {
      const std::size_t least = least_of(first);
      if (!heap_[least].before(event)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, event);
  }

  // Of four children. What is unused is never the least, unless all are.
  std::size_t least_of(std::size_t first) const {
    return earlier(earlier(first, first + 1), earlier(first + 2, first + 3));
  }
  std::size_t earlier(std::size_t a, std::size_t b) const {
    return heap_[b].before(heap_[a]) ? b : a;
  }

  std::vector<Event> heap_;  // what is unused never happens
  std::vector<std::uint32_t> place_;
  std::size_t count_ = 0;  // with the root, which is dead while it is a hole
  std::size_t first_ = 0;  // where the earliest is: in a child of the root while that is a hole
};

}  // namespace ferry::sim
