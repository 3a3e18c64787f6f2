// The frozen weights of one device (shared/state/weights.h), without the type of the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <memory>
#include <utility>

#include "real/api/stream_logged.h"
#include "shared/state/weights.h"

namespace ferry::real {

// As Weights. The current stream is LibTorch's.
class DeviceWeights {
 public:
  virtual ~DeviceWeights() = default;
  virtual WardId add(const c10::Storage& storage) = 0;
  virtual c10::Storage hold(WardId id) = 0;
  virtual void release(WardId id) noexcept = 0;
  virtual std::unique_ptr<Saved<at::Tensor>> refer(WardId id, const at::Tensor& tensor) = 0;
  virtual void remove(WardId id) noexcept = 0;
  virtual WardStatistics statistics() const = 0;
};

template <Device D>
class WeightsOn final : public DeviceWeights {
 public:
  WeightsOn(D device, WardOptions options)
      : weights_(std::make_shared<Weights<D>>(std::move(device), std::move(options))) {}
  WardId add(const c10::Storage& storage) override { return weights_->add(storage); }
  c10::Storage hold(WardId id) override { return weights_->hold(id); }
  void release(WardId id) noexcept override { weights_->release(id); }
  std::unique_ptr<Saved<at::Tensor>> refer(WardId id, const at::Tensor& tensor) override {
    return weights_->refer(id, tensor);
  }
  void remove(WardId id) noexcept override { weights_->remove(id); }
  WardStatistics statistics() const override { return weights_->statistics(); }

 private:
  const std::shared_ptr<Weights<D>> weights_;
};

// The same; it writes a stream log if one is active.
template <Device D>
std::shared_ptr<DeviceWeights> make_weights_on(D device, WardOptions options,
                                               std::shared_ptr<StreamLog> log) {
  if (!log) return std::make_shared<WeightsOn<D>>(std::move(device), std::move(options));
  return std::make_shared<WeightsOn<StreamLogged<D>>>(
      StreamLogged<D>(std::move(device), std::move(log)), std::move(options));
}

}  // namespace ferry::real
