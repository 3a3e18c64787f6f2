// A saved tensor that hooks leave on its device. Unpacking returns it unchanged, or throws if it
// was written in place after its save. Checkpoints (frame.h, runs.h) and spans (shared/replay) keep
// tensors in this way; an offloader has its own (OffloadCore::Kept).
#pragma once

#include <cstdint>
#include <utility>

#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

namespace ferry {

template <ComputeDevice D>
class KeptTensor final : public Saved<typename D::Tensor> {
 public:
  using Tensor = typename D::Tensor;

  // `tensor` must have no graph: otherwise a node that saves its own output would own itself.
  KeptTensor(D device, Tensor tensor)
      : device_(std::move(device)),
        tensor_(std::move(tensor)),
        version_(device_.version(tensor_)),
        version_at_save_(device_.read(version_)) {}

  Tensor unpack() override {
    if (written()) {
      throw make_error<Tensor>(ModifiedInPlace(device_.read(version_), version_at_save_));
    }
    return tensor_;
  }
  // True if the tensor was written in place after its save.
  bool written() { return device_.read(version_) != version_at_save_; }

 private:
  D device_;
  Tensor tensor_;
  typename D::Version version_;
  std::uint64_t version_at_save_;
};

}  // namespace ferry
