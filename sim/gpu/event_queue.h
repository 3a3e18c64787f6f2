// The pending events of the engine, at most one for each slot, in the order of time and `order`
// (event_heap.h says what a slot is).
//
// Usually few are pending: one for each engine of a device or two. Those stay sorted in an array,
// so the next one's place is known without a comparison to wait for. If they become many, all go
// into a heap until few are left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/gpu/event_heap.h"

namespace ferry::sim {

class EventQueue {
 public:
  static constexpr std::int64_t kNever = EventHeap::kNever;

  void add_slots(std::size_t slots) { slots_ = std::max(slots_, slots); }

  bool empty() const { return next_time() == kNever; }

  // Returns the earliest pending time; kNever if nothing is pending.
  std::int64_t next_time() const { return are_many_ ? heap_.next_time() : few_[count_].time; }

  // Removes the earliest event, and returns its slot. The queue must not be empty.
  std::uint32_t pop_slot() {
    if (are_many_) return pop_of_many();
    return few_[count_--].slot;
  }

  // The slot must have no pending event.
  void push(const Event& event) {
    if (are_many_ || count_ == kFew) return push_to_many(event);
    std::size_t at = ++count_;
    for (; few_[at - 1].before(event); --at) few_[at] = few_[at - 1];
    few_[at] = event;
  }

  // Moves the slot's pending event to another time.
  void move(std::uint32_t slot, std::int64_t time) {
    if (are_many_) return heap_.move(slot, time);
    std::size_t at = count_;
    while (few_[at].slot != slot) --at;
    Event event = few_[at];
    for (; at < count_; ++at) few_[at] = few_[at + 1];
    --count_;
    event.time = time;
    push(event);
  }

 private:
  static constexpr std::size_t kFew = 8;

  [[gnu::noinline]] void push_to_many(const Event& event) {
    heap_.add_slots(slots_);
    for (; count_ > 0; --count_) heap_.push(few_[count_]);
    are_many_ = true;
    heap_.push(event);
  }

  [[gnu::noinline]] std::uint32_t pop_of_many() {
    const std::uint32_t slot = heap_.pop().slot;
    if (heap_.size() <= kFew / 2) {
      are_many_ = false;
      count_ = heap_.size();
      for (std::size_t at = count_; at > 0; --at) few_[at] = heap_.pop();
    }
    return slot;
  }

  Event few_[kFew + 1];  // sorted, from index 1, the earliest last; index 0 is never
  std::size_t count_ = 0;
  std::size_t slots_ = 0;  // the heap gets room for so many when it is first used
  bool are_many_ = false;
  EventHeap heap_;
};

}  // namespace ferry::sim
