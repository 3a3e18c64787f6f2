#include "sim/run/simulation.h"

#include <memory>
#include <utility>

#include "shared/offload/offloader.h"
#include "sim/run/core.h"
#include "sim/run/training/scheduler.h"

namespace ferry::sim {
namespace {

// Ferry's offloader as a scheduler of the run.
template <class D>
class Offloading final : public Scheduler {
 public:
  Offloading(D device, SimAutograd autograd, const CoreOptions& options, Rules rules,
             HooksWatch* watch)
      : offloader_(std::move(device), autograd, options, rules), watch_(watch) {}
  std::shared_ptr<Hooks<Tensor>> hooks() override {
    return watch_ ? watch_->watch(offloader_.hooks()) : offloader_.hooks();
  }
  void exempt(const Tensor& tensor) override { offloader_.exempt(tensor); }
  void begin_forward() override {
    offloader_.begin_run();
    if (watch_) watch_->begin_forward();
  }
  bool empty() const override { return offloader_.empty(); }
  OffloadStatistics statistics() const override { return offloader_.statistics(); }

 private:
  Offloader<D, SimAutograd> offloader_;
  HooksWatch* watch_;  // not owned; may be null
};

class Offloaders final : public OffloaderMaker {
 public:
  std::unique_ptr<Scheduler> make(SimDevice device, SimAutograd autograd,
                                  const SimulationOptions& options, Warn warn) const override {
    return made(std::move(device), autograd, options, std::move(warn));
  }
  std::unique_ptr<Scheduler> make(Bent<SimDevice> device, SimAutograd autograd,
                                  const SimulationOptions& options, Warn warn) const override {
    return made(std::move(device), autograd, options, std::move(warn));
  }
  std::unique_ptr<Scheduler> make(Faulty<SimDevice> device, SimAutograd autograd,
                                  const SimulationOptions& options, Warn warn) const override {
    return made(std::move(device), autograd, options, std::move(warn));
  }

 private:
  template <class D>
  static std::unique_ptr<Scheduler> made(D device, SimAutograd autograd,
                                         const SimulationOptions& options, Warn warn) {
    CoreOptions offload = *options.offload;
    offload.warn = std::move(warn);
    return std::make_unique<Offloading<D>>(std::move(device), autograd, offload, options.rules,
                                           options.hooks_watch);
  }
};

}  // namespace

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options) {
  const Offloaders offloaders;
  Simulation result = run_training(program, hardware, options, &offloaders);
  if (options.offload && !options.scheduler) {
    result.resident.waiting_peak_bytes = result.statistics.forward_stash_peak_bytes;
  }
  return result;
}

}  // namespace ferry::sim
