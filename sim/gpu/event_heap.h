// The pending events of a simulation: a 4-ary array heap with at most one event for each slot.
//
// A slot stands for something that has at most one pending event (a hardware engine, a stream that
// waits for the host). Events are ordered by (time, order). `order` has the class and the sequence
// number, which break ties, so two runs agree to the bit. An event may be moved (a copy whose
// bandwidth changed), so the heap remembers where each slot's event is.
//
// The common step takes the earliest event and schedules the same engine again. So pop() leaves a
// hole at the root, and the next push() fills it: one walk down the heap instead of two.
//
// Few events are pending at once. For so few, an array heap is faster than ladder queues, calendar
// queues and pairing heaps, and four children of a node are faster than two.
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

  // Returns the earliest pending time; kNever if nothing is pending.
  std::int64_t next_time() const { return heap_[first_].time; }

  // Removes and returns the earliest event. The heap must not be empty. The result is valid until
  // the next call.
  const Event& pop() {
    fill_hole();
    first_ = least_of(1);
    return heap_[0];
  }

  // The slot must have no pending event.
  void push(const Event& event) {
    if (first_ != 0) {
      fall_in(event);
    } else {
      sift_up(count_++, event);
    }
  }

  // Moves the slot's pending event to another time.
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

  // Puts the event into the hole at the root.
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

  // Returns the earliest of four children. An unused one is never the earliest, unless all are
  // unused.
  std::size_t least_of(std::size_t first) const {
    return earlier(earlier(first, first + 1), earlier(first + 2, first + 3));
  }
  std::size_t earlier(std::size_t a, std::size_t b) const {
    return heap_[b].before(heap_[a]) ? b : a;
  }

  std::vector<Event> heap_;  // unused ones have time kNever
  std::vector<std::uint32_t> place_;
  std::size_t count_ = 0;  // with the root, even if that is a hole
  std::size_t first_ = 0;  // index of the earliest: a child of the root if that is a hole
};

}  // namespace ferry::sim
