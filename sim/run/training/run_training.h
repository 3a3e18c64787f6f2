// Runs the steps of a training on one simulated device, under any scheduler of saved tensors, and
// returns the results (result.h).
//
// Checkpoints and spans are the core's, because they belong to the program. The core's offloader is
// not known here: a caller that has it makes one for the run (OffloaderMaker). So programs that
// need only this code, for example the tests of a user's scheduler, do not link Ferry's offloader.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/training/options.h"
#include "sim/run/training/result.h"

namespace ferry::sim {

// Makes the offloader that the options request, on the device of the run: the simulated one, or one
// with a step that is wrong (Bent) or fails (Faulty). `warn` gets the offloader's warnings.
class OffloaderMaker {
 public:
  using Warn = std::function<void(const std::string&)>;
  virtual ~OffloaderMaker() = default;
  virtual std::unique_ptr<Scheduler> make(SimDevice device, SimAutograd autograd,
                                          const SimulationOptions& options, Warn warn) const = 0;
  virtual std::unique_ptr<Scheduler> make(Bent<SimDevice> device, SimAutograd autograd,
                                          const SimulationOptions& options, Warn warn) const = 0;
  virtual std::unique_ptr<Scheduler> make(Faulty<SimDevice> device, SimAutograd autograd,
                                          const SimulationOptions& options, Warn warn) const = 0;
};

// `offloaders` is used if the options have an offload and no scheduler. If it is null then,
// std::invalid_argument is thrown.
Simulation run_training(const Program& program, const Hardware& hardware,
                        const SimulationOptions& options,
                        const OffloaderMaker* offloaders = nullptr);

// Prepares several runs of the program on this hardware, whatever their workspaces. Pass false for
// `takes_memory` if the tapes' kernels allocate no memory.
std::shared_ptr<const Prepared> prepare(const Program& program, const Hardware& hardware,
                                        bool takes_memory = true);

// Returns a fault point that asks `choices` at each step if it fails.
std::shared_ptr<FaultPoint> fault_of(choices::Choices& choices);

}  // namespace ferry::sim
