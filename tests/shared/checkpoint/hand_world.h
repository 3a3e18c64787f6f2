// The machine of a drawn test, the autograd by hand beside it, and what was objected to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/check/vain_waits.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/run/training/run_parts.h"
#include "tests/shared/checkpoint/hand.h"
#include "tests/support/objection.h"

namespace ferry::test {

// A drawn test's script goes on for so many steps, and is tried with so many numbers.
inline constexpr int kScriptSteps = 40;
inline constexpr std::uint64_t kScripts = 400;

class HandWorld {
 public:
  HandWorld() {
    machine.add_consumer(&checkers_);
    machine.add_consumer(&waits_);
  }
  HandWorld(const HandWorld&) = delete;
  HandWorld& operator=(const HandWorld&) = delete;

  sim::SimDevice device() { return sim::SimDevice(machine); }
  // Each operator, and each kernel, has a number.
  std::uint64_t next_number() { return ++numbers_; }
  void read(const sim::Tensor& tensor) {
    const Range range = sim::range_of(tensor);
    machine.kernel("use", next_number(), {&range, 1}, {}, 1);
  }
  bool empty() const { return machine.live_storages() == 0 && machine.live_events() == 0; }

  // The first objection counts. `kind`: "leak", "value".
  void object(const std::string& kind, const std::string& words) {
    if (is_right()) wrong_ = kind + ": " + words;
  }
  bool is_right() const { return !wrong_; }
  // At the end of the script: what it objected to, or else what the checkers do.
  Objection objection() {
    if (!is_right()) return wrong_;
    const std::vector<check::Hazard> hazards = checkers_.hazards(machine.hazards());
    if (!hazards.empty()) return to_string(hazards.front());
    if (!waits_.complaint().empty()) object("moves", waits_.complaint());
    return wrong_;
  }

 private:
  // The machine tells them what happens until it is gone.
  sim::Checkers checkers_{sim::Checks::kAll, {.reuse_at_free = true}};
  check::VainWaits waits_;
  std::uint64_t numbers_ = 0;
  Objection wrong_;

 public:
  sim::Machine machine{sim::MachineOptions{}};
  HandState state;
  HandAutograd autograd{state};
};

}  // namespace ferry::test
