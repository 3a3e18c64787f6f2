// One device of a pipeline as the core's PipelineDevice (shared/seam/device.h), over LibTorch's
// generic guards: the CPU, or a device of whatever accelerator there is.
//
// On the CPU everything is done when it returns, so its one stream is all streams; several handles
// on the CPU are several devices of a pipeline, a worker each, and nothing is copied between them.
// On an accelerator what arrives does so on streams of LibTorch's pool, a micro-batch's always on
// the same one. Where the CPU is to wait for an accelerator, the host does.
//
//     LibTorch copies between devices on the *source's* current stream, between two barriers:
//
//     source, departures   ──────────● copy ●──────        (so not its compute stream)
//                                    ▲      │
//     target, arrivals     ── sent ──┘      └── received
//
// If a device has no LibTorch stream beside its current one, that one serves for all.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "real/tensors/torch_compute.h"

namespace ferry::real {

class TorchPipeDevice : public TorchCompute {
 public:
  // A missing index means the accelerator's current device.
  explicit TorchPipeDevice(c10::Device device);
  c10::Device device() const { return device_; }

  Stream current_stream() const;
  Stream compute_stream() const;
  Stream transfer_stream(std::uint32_t microbatch) const;
  static void wait(Step step, const Stream& stream, const Event& event);
  bool on_device(const Tensor& tensor) const {
    return tensor.defined() && tensor.device() == device_;
  }
  // Keeps the strides if they cover each byte once; otherwise the result is dense.
  Tensor transfer(Step step, const Tensor& tensor, TorchPipeDevice& other,
                  const Stream& stream) const;

 private:
  struct Streams;
  c10::Device device_;
  std::shared_ptr<Streams> streams_;  // none for the CPU
};

static_assert(PipelineDevice<TorchPipeDevice>);

}  // namespace ferry::real
