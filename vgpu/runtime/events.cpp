#include "vgpu/runtime/events.h"

namespace ferry::vgpu {

Event* Events::create(int device, bool timed) {
  auto* const event = new Event{.id = take_id(), .device = device, .timed = timed};
  living_.insert(event);
  return event;
}

void Events::destroy(Event& event) {
  living_.erase(&event);
  delete &event;
}

Event* Events::find(cudaEvent_t handle) const {
  auto* const wanted = reinterpret_cast<Event*>(handle);
  return living_.contains(wanted) ? wanted : nullptr;
}

}  // namespace ferry::vgpu
