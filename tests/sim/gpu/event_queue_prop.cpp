// The queue against a std::map: whether few events are pending or many, the least comes first.
#include "sim/gpu/event_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace ferry::sim {
namespace {

using Key = std::pair<std::int64_t, std::uint64_t>;  // time, order

struct Model {
  std::map<Key, std::uint32_t> slots;
  std::map<std::uint32_t, Key> keys;

  void push(const Event& event) {
    slots[{event.time, event.order}] = event.slot;
    keys[event.slot] = {event.time, event.order};
  }
  std::uint32_t pop() {
    const std::uint32_t slot = slots.begin()->second;
    slots.erase(slots.begin());
    keys.erase(slot);
    return slot;
  }
  void move(std::uint32_t slot, std::int64_t time) {
    const Key key = keys.at(slot);
    slots.erase(key);
    push({time, key.second, slot});
  }
};

// Pushes more often than it pops for a while, then less often: so both ways from few to many.
RC_GTEST_PROP(EventQueueProp, TheLeastTimeAndOrderComeFirst, ()) {
  constexpr std::uint32_t kSlots = 40;
  EventQueue queue;
  queue.add_slots(kSlots);
  Model model;
  std::uint64_t order = 0;
  int pushes = 50;  // hundredths
  const int steps = *rc::gen::inRange(0, 500);
  for (int i = 0; i < steps; ++i) {
    if (i % 50 == 0) pushes = *rc::gen::inRange(10, 90);
    const std::int64_t time = *rc::gen::inRange(0, 30);  // so that many are equal
    const auto slot = *rc::gen::inRange<std::uint32_t>(0, kSlots);
    if (model.keys.contains(slot) && *rc::gen::inRange(0, 4) == 0) {
      queue.move(slot, time);
      model.move(slot, time);
    } else if (*rc::gen::inRange(0, 100) < pushes && !model.keys.contains(slot)) {
      const Event event{time, order++, slot};
      queue.push(event);
      model.push(event);
    } else if (!model.keys.empty()) {
      RC_ASSERT(queue.pop_slot() == model.pop());
    }
    RC_ASSERT(queue.empty() == model.keys.empty());
    const Key none{EventQueue::kNever, 0};
    RC_ASSERT(queue.next_time() == (model.slots.empty() ? none : model.slots.begin()->first).first);
  }
  while (!model.keys.empty()) RC_ASSERT(queue.pop_slot() == model.pop());
  RC_ASSERT(queue.empty());
}

}  // namespace
}  // namespace ferry::sim
