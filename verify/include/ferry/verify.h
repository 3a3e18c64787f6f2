// A scheduler of saved tensors of your own, hunted: random training steps on a simulated GPU, with
// all that CUDA and PyTorch leave open drawn as well; every oracle watching; what one objects to
// made small, and told on a screen with a line that replays it. docs/your-scheduler.md is the page.
//
//   template <ferry::Device D, ferry::Autograd A>
//   class Mine {
//    public:
//     using Tensor = typename D::Tensor;
//     Mine(D device, A autograd);
//     // Called as autograd saves a tensor. What it returns gives the tensor back, whenever
//     // autograd unpacks it, and dies with autograd's node; null: autograd keeps the tensor.
//     std::unique_ptr<ferry::Saved<Tensor>> pack(const Tensor& tensor);
//
//     // As it likes:
//     void exempt(const Tensor& tensor);  // told of each parameter and buffer, before the step
//     void begin_forward();               // before each forward
//     void finish();                      // after the step
//     bool empty() const;                 // true if it holds nothing; asked after finish()
//   };
//
//   int main(int argc, char** argv) {
//     return ferry::verify::hunt_main(argc, argv, {ferry::verify::hunted<Mine>("mine")});
//   }
//
// Concepts (shared/seam/device.h, shared/seam/autograd.h) say what a device and autograd can do.
// The same class runs on Ferry's devices for LibTorch. In place of `pack` it may have
// `std::shared_ptr<ferry::Hooks<Tensor>> hooks()`.
//
// Threads: a scheduler is made anew for each run, and is used by the run's thread alone. Runs go on
// on several threads at once. Ownership: it outlives all that it packed. Errors: what it throws
// ends the call, or the backward, of the program in which it was thrown.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "shared/adaptors/observed.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/adapted.h"
#include "verify/hunt/hunt.h"
#include "verify/hunt/hunt_main.h"
#include "verify/hunted/hunted.h"

namespace ferry::verify {

// A scheduler over the concepts, hunted under that name. `args` are given to each one that is made,
// after the device and autograd. HuntedScheduler has what it may be told besides: what programs it
// is not made for, and what it promises.
template <template <class, class> class S, class... Args>
HuntedScheduler hunted(std::string name, Args... args) {
  using Usual = S<sim::SimDevice, sim::SimAutograd>;
  using Failing = S<Faulty<sim::SimDevice>, sim::SimAutograd>;
  static_assert(std::constructible_from<Usual, sim::SimDevice, sim::SimAutograd, const Args&...>,
                "ferry: a scheduler is made of a device and autograd, in this order, and of what "
                "hunted() is given besides: `S(D device, A autograd, ...)`, public");
  HuntedScheduler scheduler;
  scheduler.name = std::move(name);
  scheduler.make =
      [args...](const sim::SimDevice& device, const sim::SimAutograd& autograd,
                const std::shared_ptr<FaultPoint>& fault) -> std::unique_ptr<sim::Scheduler> {
    if (!fault) return sim::adapted<Usual>(device, autograd, args...);
    return sim::adapted<Failing>(Faulty<sim::SimDevice>(device, fault), autograd, args...);
  };
  return scheduler;
}

// One that knows the simulated device alone: its calls do not fail.
template <class S, class... Args>
HuntedScheduler hunted(std::string name, Args... args) {
  static_assert(std::constructible_from<S, sim::SimDevice, sim::SimAutograd, const Args&...>,
                "ferry: a scheduler is made of a ferry::sim::SimDevice and a "
                "ferry::sim::SimAutograd, in this order, and of what hunted() is given besides");
  HuntedScheduler scheduler;
  scheduler.name = std::move(name);
  scheduler.make = [args...](const sim::SimDevice& device, const sim::SimAutograd& autograd,
                             const std::shared_ptr<FaultPoint>&) {
    return sim::adapted<S>(device, autograd, args...);
  };
  return scheduler;
}

}  // namespace ferry::verify
