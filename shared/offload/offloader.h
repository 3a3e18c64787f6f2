// The offloader: a pair of saved-tensor hooks that sends what autograd saves to the host and brings
// it back (shared/offload/offload_core.h).
//
//   Offloader<SimDevice, SimAutograd> offloader(device, autograd, options);
//   offloader.exempt(parameter);
//   HooksGuard guard(autograd, offloader.hooks());   // forward and backward under it
//
// Guarantees 1 to 13 of ARCHITECTURE.md hold; the steps named there are shared/seam/step.h's.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "shared/offload/offload_core.h"

namespace ferry {

// The handle that users hold. Copies share one core.
template <Device D, Autograd A>
requires std::same_as<typename D::Tensor, typename A::Tensor>
class Offloader {
 public:
  using Tensor = typename D::Tensor;

  // Throws std::invalid_argument if an option is out of its range.
  Offloader(D device, A autograd, CoreOptions options = {}, Rules rules = {})
      : core_(std::make_shared<Core>(std::move(device), std::move(autograd), std::move(options),
                                     rules)),
        hooks_(std::make_shared<Pair>(core_)) {}

  // Pass it to HooksGuard. The hooks see saves while they are installed, and serve them for ever.
  std::shared_ptr<Hooks<Tensor>> hooks() const { return hooks_; }

  // Never offloads this parameter or buffer, whatever storage it has at the time of a pack.
  void exempt(const Tensor& tensor) { core_->exempt(tensor); }

  // Begins a new forward: packs count from 0 again.
  void begin_run() { core_->begin_run(); }
  // For several offloaders that share a forward, each serving its own device: the next pack gets
  // this ordinal of this run.
  void continue_at(std::uint64_t run, std::uint64_t pack) { core_->continue_at(run, pack); }

  OffloadStatistics statistics() const { return core_->statistics(); }

  // True if nothing is left: no parcel, no stashed storage, no task.
  bool empty() const { return core_->empty(); }

 private:
  using Core = OffloadCore<D, A>;

  class Pair final : public Hooks<Tensor> {
   public:
    explicit Pair(std::shared_ptr<Core> core) : core_(std::move(core)) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      return core_->pack(tensor);
    }

   private:
    std::shared_ptr<Core> core_;
  };

  std::shared_ptr<Core> core_;
  std::shared_ptr<Hooks<Tensor>> hooks_;
};

}  // namespace ferry
