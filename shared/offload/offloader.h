// The offloader, for programs that know the type of its device at compile time. It is a handle of
// the core, a pair of saved-tensor hooks that copies saved tensors to the host and back
// (shared/offload/offload_core.h).
//
//   Offloader<SimDevice, SimAutograd> offloader(device, autograd, options);
//   offloader.exempt(parameter);
//   HooksGuard guard(autograd, offloader.hooks());   // forward and backward under it
//
// Guarantees 1 to 13 of ARCHITECTURE.md hold. OffloadHooks (shared/seam/hooks.h) documents the
// calls. Programs that learn the device at run time use real/api/device_offloaders.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "shared/offload/offload_core.h"

namespace ferry {

// Copies of an Offloader share one core.
template <Device D, Autograd A>
requires std::same_as<typename D::Tensor, typename A::Tensor>
class Offloader {
 public:
  using Tensor = typename D::Tensor;

  // Throws std::invalid_argument if an option is out of its range.
  Offloader(D device, A autograd, CoreOptions options = {}, Rules rules = {})
      : core_(std::make_shared<OffloadCore<D, A>>(std::move(device), std::move(autograd),
                                                  std::move(options), rules)) {}

  // Pass these to HooksGuard. They see saves while they are installed; the saves can be unpacked at
  // any later time.
  std::shared_ptr<Hooks<Tensor>> hooks() const { return core_; }

  void exempt(const Tensor& tensor) { core_->exempt(tensor); }
  void begin_run() { core_->begin_run(); }
  void continue_at(std::uint64_t run, std::uint64_t pack) { core_->continue_at(run, pack); }
  OffloadStatistics statistics() const { return core_->statistics(); }
  bool empty() const { return core_->empty(); }

 private:
  std::shared_ptr<OffloadCore<D, A>> core_;
};

}  // namespace ferry
