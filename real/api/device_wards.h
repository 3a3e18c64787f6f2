// The wards of one device (shared/state/wards.h), without the type of the device.
//
// The CPU's are made here. A library for another type of device registers how to make its own when
// it is loaded (real/cuda_backend), as for offloaders.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "real/api/device_weights.h"
#include "real/api/stream_logged.h"
#include "shared/state/wards.h"

namespace ferry::real {

// As Wards. Calls come one at a time; each may be made on another thread. The current stream is
// LibTorch's.
class DeviceWards {
 public:
  virtual ~DeviceWards() = default;
  virtual WardId add(const c10::Storage& storage) = 0;
  virtual c10::Storage take(WardId id) = 0;
  virtual void written(WardId id) = 0;
  virtual void give_back(WardId id, bool was_written) = 0;
  virtual void remove(WardId id) = 0;
  virtual void bring_ahead() = 0;
  virtual void end_step(bool keep_order) = 0;
  virtual WardStatistics statistics() const = 0;
};

template <Device D>
class WardsOn final : public DeviceWards {
 public:
  WardsOn(D device, WardOptions options) : wards_(std::move(device), std::move(options)) {}
  WardId add(const c10::Storage& storage) override { return wards_.add(storage); }
  c10::Storage take(WardId id) override { return wards_.take(id); }
  void written(WardId id) override { wards_.written(id); }
  void give_back(WardId id, bool was_written) override { wards_.give_back(id, was_written); }
  void remove(WardId id) override { wards_.remove(id); }
  void bring_ahead() override { wards_.bring_ahead(); }
  void end_step(bool keep_order) override { wards_.end_step(keep_order); }
  WardStatistics statistics() const override { return wards_.statistics(); }

 private:
  Wards<D> wards_;
};

// The same; it writes a stream log if one is active.
template <Device D>
std::unique_ptr<DeviceWards> make_wards_on(D device, WardOptions options,
                                           std::shared_ptr<StreamLog> log) {
  if (!log) return std::make_unique<WardsOn<D>>(std::move(device), std::move(options));
  return std::make_unique<WardsOn<StreamLogged<D>>>(
      StreamLogged<D>(std::move(device), std::move(log)), std::move(options));
}

// Makes the wards of a device: those of an optimizer's state, or frozen weights (device_weights.h).
struct WardMakers {
  std::unique_ptr<DeviceWards> (*wards)(c10::Device device, WardOptions options) = nullptr;
  std::shared_ptr<DeviceWeights> (*weights)(c10::Device device, WardOptions options) = nullptr;
};
void register_wards(c10::DeviceType type, WardMakers makers);

// `disk` is a folder for the bytes of wards on the CPU; none: memory. Throws c10::Error if the
// device does not exist or has no wards, and DiskError if the folder cannot be used.
using Disk = std::optional<std::filesystem::path>;
std::unique_ptr<DeviceWards> make_wards(c10::Device device, WardOptions options, const Disk& disk);
std::shared_ptr<DeviceWeights> make_weights(c10::Device device, WardOptions options,
                                            const Disk& disk);

}  // namespace ferry::real
