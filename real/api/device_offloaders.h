// The offloaders of one Offload: one core for each device that its saved tensors are on, and who
// makes it.
//
// If the options name a device, that one's is the only one; else a device's is made when something
// is saved there first. (Options that need the CPU, such as a disk, name it.) All of them number
// the packs of a forward together, so that a plan, and the decision log, mean the same wherever the
// tensors lie.
//
// The core is compiled once for each type of device (OffloadCore<CpuDevice, TorchAutograd>); here
// it is an OffloadHooks, whose type of device is lost. The CPU's is made here. A library for
// another type registers its maker when it is loaded (real/cuda_backend), so that a program without
// CUDA links none.
//
// Thread-safe. Each core has a lock of its own, which is taken within this one. A pack goes to its
// core without this one, for it may wait for a copy.
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
  // Waits for the copies under way; the observer has then been told of each.
  std::function<void()> flush;
  std::shared_ptr<OffloadHooks<at::Tensor>> hooks;  // the core
  // The bytes of its saved tensors on the host's side, whether a copy is on the device as well.
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

// The same, with a log on the device if one is active.
template <Device D>
DeviceOffloader make_offloader_on(D device, CoreOptions options, std::shared_ptr<StreamLog> log) {
  auto host_bytes = host_bytes_of(device);
  DeviceOffloader made = log ? make_offloader_on(StreamLogged<D>(std::move(device), std::move(log)),
                                                 std::move(options))
                             : make_offloader_on(std::move(device), std::move(options));
  made.host_bytes = std::move(host_bytes);
  return made;
}

// What a type of device registers: how its offloaders are made; and the options of its caching
// allocator, in PYTORCH_CUDA_ALLOC_CONF's syntax.
using MakeOffloader = DeviceOffloader (*)(c10::Device device, const OffloadOptions& options,
                                          CoreOptions core, SpanObserver observer);
using AllocatorSettings = std::string (*)();
void register_offloader(c10::DeviceType type, MakeOffloader make);
void register_allocator(c10::DeviceType type, AllocatorSettings settings);
// None where the type has no such allocator.
std::optional<std::string> allocator_settings(c10::DeviceType type);

class DeviceOffloaders final : public Hooks<at::Tensor> {
 public:
  // Throws ValueError if an option makes no sense, and c10::Error if the device does not exist or
  // has no maker.
  DeviceOffloaders(OffloadOptions options, CoreOptions core, SpanObserver observer);

  // Keeps a tensor of a device that no offloader serves.
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  void exempt(const at::Tensor& tensor);
  void begin_run();
  OffloadStatistics statistics() const;
  // Samples each device's memory, now, and returns the sums of what was seen.
  OffloadMemory memory();
  bool saves_nothing() const;
  bool empty() const;
  void flush();
  // Those that an offloader serves.
  std::vector<c10::Device> devices() const;
  // "cpu to memory, cuda:0 to page-locked memory", and which tensors nobody can offload.
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
  std::vector<Entry> entries_;  // at least one, once something was packed
  std::vector<c10::Device> unserved_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> exempt_;
  std::size_t exempt_due_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t packs_ = 0;
};

}  // namespace ferry::real
