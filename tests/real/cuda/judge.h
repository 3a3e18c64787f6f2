// Who watches a run on the virtual GPU: the simulator's checkers, fed with what the
// runtime was asked for.
//
// The log is in the order of the host's calls, so the verdict of happens-before holds for every
// timing of the device. Blocks of LibTorch's allocator are told by its trace (environment.cpp):
// their life ends where the allocator may give them out again, which for one that was recorded as
// in use is when a query of its events succeeded, an event sync of the log.
#pragma once

#include <string>
#include <vector>

#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "vgpu/runtime/control.h"

namespace ferry::real {

class Judge final : public vgpu::Listener {
 public:
  void on(const StreamOp& op) override {
    lifetime_(op);
    happens_before_(op);
  }
  void forget(Range range) override { happens_before_.forget(range); }
  void destroy_event(EventId event) override { happens_before_.destroy_event(event); }

  std::vector<std::string> hazards() const {
    std::vector<std::string> texts;
    for (const check::Hazard& hazard : lifetime_.hazards()) texts.push_back(to_string(hazard));
    for (const check::Hazard& hazard : happens_before_.hazards()) {
      texts.push_back(to_string(hazard));
    }
    return texts;
  }

 private:
  // LibTorch and the pools hold memory from before.
  check::Lifetime lifetime_{{.allow_outside = true}};
  check::HappensBefore happens_before_{{.host_free_waits = true}};
};

}  // namespace ferry::real
