// Tests a scheduler of your own. Random training steps run on a simulated GPU, with random answers
// to all that CUDA and PyTorch leave open, and oracles watch every run. A program to which an
// oracle objects is shrunk, and reported on one screen with a line that replays it.
// docs/guides/your-scheduler.md is a guide.
//
//   template <ferry::Device D, ferry::Autograd A>
//   class Mine {
//    public:
//     using Tensor = typename D::Tensor;
//     Mine(D device, A autograd);
//     // Called when autograd saves a tensor. The returned object gives the tensor back each time
//     // autograd unpacks it, and is destroyed with autograd's node. Return null to let autograd
//     // keep the tensor.
//     std::unique_ptr<ferry::Saved<Tensor>> pack(const Tensor& tensor);
//
//     // Optional members:
//     void exempt(const Tensor& tensor);  // for each parameter and buffer, before the step
//     void begin_forward();               // before each forward
//     void finish();                      // after the step
//     bool empty() const;                 // called after finish(); true if it holds nothing
//   };
//
//   int main(int argc, char** argv) {
//     return ferry::verify::hunt_main(argc, argv, {ferry::verify::hunted<Mine>("mine")});
//   }
//
// The concepts in shared/seam/device.h and shared/seam/autograd.h say what a device and autograd
// can do. The same class runs on Ferry's devices for LibTorch. Instead of `pack`, a class may have
// `std::shared_ptr<ferry::Hooks<Tensor>> hooks()`.
//
// * Threads: each run makes its own scheduler and uses it on one thread. Several runs go on at
//   once.
// * Ownership: the scheduler outlives everything that it packed.
// * Errors: an exception of the scheduler ends the call, or the backward, in which it is thrown.
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

// Describes a scheduler over the two concepts, under this name. `args` are passed to its
// constructor after the device and autograd. Set further members of the result to say which
// programs the scheduler does not support, and what it promises.
template <template <class, class> class S, class... Args>
HuntedScheduler hunted(std::string name, Args... args) {
  using Usual = S<sim::SimDevice, sim::SimAutograd>;
  using Failing = S<Faulty<sim::SimDevice>, sim::SimAutograd>;
  static_assert(std::constructible_from<Usual, sim::SimDevice, sim::SimAutograd, const Args&...>,
                "ferry: a scheduler is made of a device and autograd, in this order, and of the "
                "other arguments of hunted(): `S(D device, A autograd, ...)`, public");
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

// Describes a scheduler that uses the simulated device only. Device calls do not fail for it.
template <class S, class... Args>
HuntedScheduler hunted(std::string name, Args... args) {
  static_assert(std::constructible_from<S, sim::SimDevice, sim::SimAutograd, const Args&...>,
                "ferry: a scheduler is made of a ferry::sim::SimDevice and a "
                "ferry::sim::SimAutograd, in this order, and of the other arguments of hunted()");
  HuntedScheduler scheduler;
  scheduler.name = std::move(name);
  scheduler.make = [args...](const sim::SimDevice& device, const sim::SimAutograd& autograd,
                             const std::shared_ptr<FaultPoint>&) {
    return sim::adapted<S>(device, autograd, args...);
  };
  return scheduler;
}

}  // namespace ferry::verify
