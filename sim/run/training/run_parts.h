// Parts that runs on one device (run_training.h) and on several (sim/run/pipeline_simulation.h)
// share: the checkers, the optimizer's state, and the readings at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/program.h"
#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/values.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "sim/run/training/result.h"
#include "sim/run/training/training.h"

namespace ferry::sim {

// Selects the checkers. A run whose hazards nobody reads needs only the values.
enum class Checks : std::uint8_t { kAll, kValues };
// The checkers of a run. Each operation goes to them in this order: lifetimes, happens-before,
// values.
class Checkers final : public StreamOpConsumer {
 public:
  explicit Checkers(Checks checks = Checks::kAll, check::HappensBefore::Options options = {}) {
    if (checks == Checks::kAll) hazards_.emplace(options);
  }
  void operator()(const StreamOp& op) override {
    if (hazards_) {
      hazards_->lifetime(op);
      hazards_->happens_before(op);
    }
    values_(op);
  }
  // Call this when the program is over, before it frees its globals.
  void end_reuse() {
    if (hazards_) hazards_->happens_before.end_reuse();
  }
  check::Values& values() { return values_; }
  const check::Values& values() const { return values_; }
  // Returns the hazards noticed elsewhere, followed by those of the checkers.
  std::vector<check::Hazard> hazards(std::vector<check::Hazard> noticed = {}) const;

 private:
  struct Hazards {
    explicit Hazards(check::HappensBefore::Options options) : happens_before(options) {}
    check::Lifetime lifetime;
    check::HappensBefore happens_before;
  };
  std::optional<Hazards> hazards_;
  check::Values values_;
};

// Returns hazards that no checker sees: a pool's broken promise, a deadlock, a misused lock, a
// tensor that came back wrong.
std::vector<check::Hazard> noticed(const Machine& machine, const Tape& tape);

// Returns the number of tensors that the optimizer keeps for each parameter.
std::int64_t optimizer_tensors(Optimizer optimizer);

// Allocates its whole state, before the first step. Each tensor lies on the device of its
// parameter.
std::vector<Storage> optimizer_state(const Program& program, Optimizer optimizer, Machine& machine,
                                     const Tape& tape);

// Returns the contents by global; 0: none. Without `values`, all are 0.
std::vector<std::uint64_t> read_gradients(const Tape& tape, const check::Values* values);

// Counts what exists besides the globals, their gradients, the workspaces and `state` storages of
// the optimizer.
Leftovers leftovers(const Machine& machine, const Tape& tape, std::size_t state);

}  // namespace ferry::sim
