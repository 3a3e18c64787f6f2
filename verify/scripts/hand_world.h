// The machine that a script runs on, the autograd by hand beside it, and what was objected to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "formats/stream_op.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/run/training/run_parts.h"
#include "verify/oracles/hazards.h"
#include "verify/oracles/vain_waits.h"
#include "verify/oracles/verdict.h"
#include "verify/scripts/hand.h"

namespace ferry::verify {

class HandWorld {
 public:
  // `watch` is told of its operations, and outlives it; null: nobody is.
  explicit HandWorld(StreamOpConsumer* watch) {
    if (watch) machine.add_consumer(watch);
    machine.add_consumer(&checkers_);
    machine.add_consumer(&waits_);
  }
  HandWorld(const HandWorld&) = delete;
  HandWorld& operator=(const HandWorld&) = delete;

  sim::SimDevice device() { return sim::SimDevice(machine); }
  // Of operators, and of kernels: each has one.
  std::uint64_t next_number() { return ++numbers_; }
  void read(const sim::Tensor& tensor) {
    const Range range = sim::range_of(tensor);
    machine.kernel("use", next_number(), {&range, 1}, {}, 1);
  }
  bool empty() const { return machine.live_storages() == 0 && machine.live_events() == 0; }

  // The first objection counts.
  void object(Oracle oracle, std::string words) {
    if (is_right()) wrong_ = {oracle, std::move(words)};
  }
  bool is_right() const { return wrong_.words.empty(); }
  // Of the whole script, at its end.
  std::optional<Verdict> verdict() {
    if (is_right()) {
      if (auto hazard = judge_hazards(checkers_.hazards(machine.hazards()))) return hazard;
      if (!waits_.complaint().empty()) object(Oracle::kMoves, waits_.complaint());
    }
    if (is_right()) return std::nullopt;
    return wrong_;
  }

 private:
  // The machine tells them what happens until it is gone.
  sim::Checkers checkers_{sim::Checks::kAll, {.reuse_at_free = true}};
  VainWaits waits_;
  std::uint64_t numbers_ = 0;
  Verdict wrong_;

 public:
  sim::Machine machine{sim::MachineOptions{}};
  HandState state;
  HandAutograd autograd{state};
};

}  // namespace ferry::verify
