// A saved tensor that hooks leave in place: unpacking returns it unchanged, or throws if it was
// written in place since.
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

  // `tensor` must have no graph: a node that saved its own output would else own itself.
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
  // True if it was written in place since.
  bool written() { return device_.read(version_) != version_at_save_; }

 private:
  D device_;
  Tensor tensor_;
  typename D::Version version_;
  std::uint64_t version_at_save_;
};

}  // namespace ferry
