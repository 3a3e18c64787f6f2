// The offloaders of one Offload: one core for each device that has saved tensors.
//
// If the options name a device, there is one offloader, for that device. Otherwise the offloader of
// a device is made when a tensor on it is saved for the first time. (Options that need the CPU,
// such as a disk, imply it.) All offloaders number the packs of a forward together, so a plan and a
// decision log mean the same wherever the tensors are.
//
// The core is compiled once for each type of device (OffloadCore<CpuDevice, TorchAutograd>); here
// it is an OffloadHooks, without that type. The CPU's core is made here. A library for another type
// registers how to make its core when it is loaded (real/cuda_backend), so a program without CUDA
// links no CUDA.
//
// Thread-safe. Each core has its own lock, which may be taken while this one is held. A pack goes
// to its core without this lock, because it may wait for a copy.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "real/api/memory_meter.h"
#include "real/api/stream_logged.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/span.h"
#include "shared/offload/offload_core.h"

namespace ferry::real {

// The offloader of one device.
struct DeviceOffloader {
  // Waits for the copies in progress. Afterwards the observer has got each of them.
  std::function<void()> flush;
  std::shared_ptr<OffloadHooks<at::Tensor>> hooks;  // the core
  // Returns the bytes of its saved tensors on the host, including those that are also on the
  // device.
  std::function<std::int64_t()> host_bytes;
};

template <class D>
std::function<std::int64_t()> host_bytes_of(D device) {
  return [device = std::move(device)]() mutable {
    if constexpr (requires { device.usage(); }) {
      return device.usage().host_bytes;
    } else {
      return device.statistics().host_in_use_bytes;
    }
  };
}

template <Device D>
DeviceOffloader make_offloader_on(D device, CoreOptions options) {
  DeviceOffloader made;
  made.hooks = std::make_shared<OffloadCore<D, TorchAutograd>>(device, TorchAutograd(),
                                                               std::move(options), Rules());
  made.flush = [device = std::move(device)]() mutable {
    if constexpr (requires(D & spanned) { spanned.flush_spans(); }) {
      device.flush_spans();
    } else {
      device.finish();
    }
  };
  return made;
}

// Does the same, and writes a stream log if one is active.
template <Device D>
DeviceOffloader make_offloader_on(D device, CoreOptions options, std::shared_ptr<StreamLog> log) {
  auto host_bytes = host_bytes_of(device);
  DeviceOffloader made = log ? make_offloader_on(StreamLogged<D>(std::move(device), std::move(log)),
                                                 std::move(options))
                             : make_offloader_on(std::move(device), std::move(options));
  made.host_bytes = std::move(host_bytes);
  return made;
}

// Each type of device may register a function that makes its offloaders, and one that returns the
// options of its caching allocator, in the syntax of PYTORCH_CUDA_ALLOC_CONF.
using MakeOffloader = DeviceOffloader (*)(c10::Device device, const OffloadOptions& options,
                                          CoreOptions core, SpanObserver observer);
using AllocatorSettings = std::string (*)();
void register_offloader(c10::DeviceType type, MakeOffloader make);
void register_allocator(c10::DeviceType type, AllocatorSettings settings);
// Returns none if the type has no such allocator.
std::optional<std::string> allocator_settings(c10::DeviceType type);

class DeviceOffloaders final : public Hooks<at::Tensor> {
 public:
  // Throws ValueError if an option is invalid, and c10::Error if the device does not exist or no
  // offloader can be made for it.
  DeviceOffloaders(OffloadOptions options, CoreOptions core, SpanObserver observer);

  // Keeps a tensor on a device that no offloader serves.
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  void exempt(const at::Tensor& tensor);
  void begin_run();
  OffloadStatistics statistics() const;
  // Samples the memory of each device now, and returns the sums of all samples.
  OffloadMemory memory();
  bool saves_nothing() const;
  bool empty() const;
  void flush();
  // Returns the devices that an offloader serves.
  std::vector<c10::Device> devices() const;
  // Returns a text like "cpu to memory, cuda:0 to page-locked memory". It also names devices
  // without an offloader.
  std::string where() const;

 private:
  struct Entry {
    c10::Device device;
    DeviceOffloader offloader;
    MemoryMeter meter;
  };
  void sample();
  Entry& make(c10::Device device);
  const std::shared_ptr<OffloadHooks<at::Tensor>>& serving(c10::Device device);

  const OffloadOptions options_;
  const CoreOptions core_;
  const SpanObserver observer_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // at least one after the first pack
  std::vector<c10::Device> unserved_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> exempt_;
  std::size_t exempt_due_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t packs_ = 0;
};

}  // namespace ferry::real
