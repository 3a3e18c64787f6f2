// The events that there are, by the handles that programs have of them.
//
// An event holds its latest record, if it was ever recorded (snapshot.h). One that is destroyed
// while work waits for its record is gone at once, and the record stays for as long as it is waited
// for. Events are numbered in the order of their making; so are the events that no program has, by
// which the legacy default stream orders others (queues.h).
//
// The runtime's lock guards them (runtime.h), and any thread of the program calls. The events that
// a program forgets to destroy stay until the process ends. Not modelled: events of other
// processes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <set>

#include "formats/stream_op.h"
#include "vgpu/runtime/snapshot.h"

namespace ferry::vgpu {

struct Event {
  EventId id{};
  int device = 0;
  bool timed = true;
  SnapshotRef latest;       // none: never recorded
  bool of_a_block = false;  // LibTorch's allocator asks it for one block's sake
};

class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  Event* create(int device, bool timed);
  void destroy(Event& event);
  // Null: it is no living event, which is an error of the caller's.
  Event* find(cudaEvent_t handle) const;
  std::int64_t count() const { return static_cast<std::int64_t>(living_.size()); }

  // The number of an event that no program has.
  EventId take_id() { return EventId{next_id_++}; }

 private:
  std::set<const Event*> living_;
  std::uint32_t next_id_ = 0;
};

}  // namespace ferry::vgpu
