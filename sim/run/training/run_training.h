// Runs the steps of a training on one simulated device, under any scheduler of saved tensors, and
// reads off what they came to (result.h).
//
// Checkpoints and spans are the core's, for they belong to the program. Its offloader is not known
// here: whoever has it makes one for the run (OffloaderMaker). So what is built on this alone, a
// hunt for a user's scheduler say, links no offloader of Ferry's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/training/options.h"
#include "sim/run/training/result.h"

namespace ferry::sim {

// Makes the offloader that the options ask for, on the device of the run: the simulated one, or one
// whose steps are taken wrongly or fail. `warn` is called with the offloader's warnings.
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

// `offloaders` is asked where the options have an offload and no scheduler. Null: nobody can be
// asked, and std::invalid_argument is thrown there.
Simulation run_training(const Program& program, const Hardware& hardware,
                        const SimulationOptions& options,
                        const OffloaderMaker* offloaders = nullptr);

// For several runs of the program on this hardware, whatever their workspaces. Not `takes_memory`:
// for tapes whose kernels take none.
std::shared_ptr<const Prepared> prepare(const Program& program, const Hardware& hardware,
                                        bool takes_memory = true);

// A fault point that asks `choices` at each step if it fails.
std::shared_ptr<FaultPoint> fault_of(choices::Choices& choices);

}  // namespace ferry::sim
