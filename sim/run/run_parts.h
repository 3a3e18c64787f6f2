// What runs of one device and runs of several have in common: the checkers, the optimizer's state,
// and what is read at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/program.h"
#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/values.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "sim/run/simulation.h"

namespace ferry::sim {

// In the order in which they look at an operation.
class Checkers final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    lifetime_(op);
    happens_before_(op);
    values_(op);
  }
  check::Values& values() { return values_; }
  const check::Values& values() const { return values_; }
  // Behind those that were noticed elsewhere.
  std::vector<check::Hazard> hazards(std::vector<check::Hazard> noticed = {}) const;

 private:
  check::Lifetime lifetime_;
  check::HappensBefore happens_before_;
  check::Values values_;
};

// What no checker sees: a pool's broken promise, a deadlock, another tensor than was saved.
std::vector<check::Hazard> noticed(const Machine& machine, const Tape& tape);

// How many tensors it keeps for each parameter.
std::int64_t optimizer_tensors(Optimizer optimizer);

// On the device of each parameter.
std::vector<Storage> optimizer_state(const Program& program, Optimizer optimizer, Machine& machine,
                                     const Tape& tape);

// Contents by global; 0: none. `values`: none, all are 0.
std::vector<std::uint64_t> read_gradients(const Tape& tape, const check::Values* values);

// What is there beyond the globals, their gradients and so many storages of the optimizer's.
Leftovers leftovers(const Machine& machine, const Tape& tape, std::size_t state);

}  // namespace ferry::sim
