// The events of the program, found by their handles.
//
// An event holds its latest record, if it was ever recorded (snapshot.h). An event that is
// destroyed while work waits for its record is gone at once; the record lives until nothing waits
// for it. Events are numbered in the order of their creation. The numbers include events that no
// program has, with which the legacy default stream orders other streams (queues.h).
//
// The runtime's lock guards the class (runtime.h); any thread of the program may call it. Events
// that a program forgets to destroy stay until the process ends. Not modelled: events of other
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
  SnapshotRef latest = nullptr;  // null if it was never recorded
  bool of_a_block = false;       // LibTorch's allocator recorded it for a returned block
  // If the latest record is part of a graph: which one, and the number of the record there.
  GraphId graph{};
  std::size_t captured = 0;
};

class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  Event* create(int device, bool timed);
  void destroy(Event& event);
  // Returns null if there is no such event, which is an error of the caller.
  Event* find(cudaEvent_t handle) const;
  std::int64_t count() const { return static_cast<std::int64_t>(living_.size()); }

  // Returns the number for an event that no program has.
  EventId take_id() { return EventId{next_id_++}; }

 private:
  std::set<const Event*> living_;
  std::uint32_t next_id_ = 0;
};

}  // namespace ferry::vgpu
