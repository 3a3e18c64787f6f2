// An offloader whose device is chosen at run time; Offload holds one.
//
// The core is compiled once for each device; here its type is lost. A library for another device
// registers its maker when it is loaded (real/cuda), so that a program without CUDA links none.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ferry/offload.h"
#include "real/api/stream_logged.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/span.h"
#include "shared/offload/offloader.h"

namespace ferry::real {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::shared_ptr<Hooks<at::Tensor>> hooks() const = 0;
  virtual void exempt(const at::Tensor& tensor) = 0;
  virtual void begin_run() = 0;
  virtual void continue_at(std::uint64_t run, std::uint64_t pack) = 0;
  virtual OffloadStatistics statistics() const = 0;
  virtual bool empty() const = 0;
  // Waits for the copies under way; the observer has then been told of each.
  virtual void flush() = 0;
};

template <Device D>
class BackendOf final : public Backend {
 public:
  BackendOf(D device, CoreOptions options)
      : device_(device), offloader_(std::move(device), TorchAutograd(), std::move(options)) {}
  std::shared_ptr<Hooks<at::Tensor>> hooks() const override { return offloader_.hooks(); }
  void exempt(const at::Tensor& tensor) override { offloader_.exempt(tensor); }
  void begin_run() override { offloader_.begin_run(); }
  void continue_at(std::uint64_t run, std::uint64_t pack) override {
    offloader_.continue_at(run, pack);
  }
  OffloadStatistics statistics() const override { return offloader_.statistics(); }
  bool empty() const override { return offloader_.empty(); }
  void flush() override {
    if constexpr (requires { device_.flush_spans(); }) {
      device_.flush_spans();
    } else {
      device_.finish();
    }
  }

 private:
  D device_;
  Offloader<D, TorchAutograd> offloader_;
};

// Adds a log to the device if one is active.
template <Device D>
std::unique_ptr<Backend> make_backend_of(D device, CoreOptions options,
                                         std::shared_ptr<StreamLog> log) {
  if (!log) return std::make_unique<BackendOf<D>>(std::move(device), std::move(options));
  return std::make_unique<BackendOf<StreamLogged<D>>>(
      StreamLogged<D>(std::move(device), std::move(log)), std::move(options));
}

using MakeBackend = std::unique_ptr<Backend> (*)(c10::Device device, const OffloadOptions& options,
                                                 CoreOptions core, SpanObserver observer);

void register_backend(c10::DeviceType type, MakeBackend make);
bool has_backend(c10::Device device);
// Throws c10::Error if there is no maker for the device.
std::unique_ptr<Backend> make_backend(c10::Device device, const OffloadOptions& options,
                                      CoreOptions core, SpanObserver observer);

// The options of a device type's caching allocator, in PYTORCH_CUDA_ALLOC_CONF's syntax.
using AllocatorSettings = std::string (*)();
void register_allocator(c10::DeviceType type, AllocatorSettings settings);
// None where the type has no such allocator.
std::optional<std::string> allocator_settings(c10::DeviceType type);

}  // namespace ferry::real
