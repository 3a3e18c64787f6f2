#include "verify/oracles/keep_run.h"

#include <utility>

#include "sim/run/training/run_training.h"

namespace ferry::verify {

bool struck(const sim::Simulation& run, const Conditions& conditions) {
  return run.out_of_memory > 0 || (conditions.choices && conditions.choices->failure());
}

sim::Simulation run_that_keeps(const Program& program, const Hardware& hardware,
                               std::shared_ptr<const sim::Prepared> prepared,
                               Lifespans* lifespans) {
  sim::SimulationOptions options;
  options.prepared = std::move(prepared);
  if (lifespans) {
    options.consumers = {lifespans};
    options.task_watches = {lifespans};
  }
  options.segments_as_calls = true;
  options.check_order = false;
  return sim::run_training(program, hardware, options);
}

}  // namespace ferry::verify
