// One device of a pipeline as the core's PipelineDevice (shared/seam/device.h), with LibTorch's
// generic device guards: the CPU, or a device of any accelerator.
//
// On the CPU all work is done when a call returns, so one stream stands for all. Several handles on
// the CPU are several devices of a pipeline, each with a worker; nothing is copied between them. On
// an accelerator, tensors arrive on streams of LibTorch's pool, those of a micro-batch always on
// the same one. If the CPU must wait for an accelerator, the host waits.
//
//     LibTorch copies between devices on the *source's* current stream, between two barriers:
//
//     source, departures   ──────────● copy ●──────        (so not its compute stream)
//                                    ▲      │
//     target, arrivals     ── sent ──┘      └── received
//
// If LibTorch has only one stream for a device, the current one, it is used for everything.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "real/tensors/torch_compute.h"

namespace ferry::real {

class TorchPipeDevice : public TorchCompute {
 public:
  // Without an index, it is the accelerator's current device.
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
  std::shared_ptr<Streams> streams_;  // null for the CPU
};

static_assert(PipelineDevice<TorchPipeDevice>);

}  // namespace ferry::real
