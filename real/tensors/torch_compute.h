// LibTorch's own streams as a ComputeDevice (shared/seam/device.h). Recomputing runs on it on any
// accelerator, without a library for that accelerator.
//
// The current stream is that of the accelerator's current device. Without an accelerator there is
// one stream, the CPU's, whose work is done when a call returns; its events are null. Tensors that
// are not on the accelerator do not belong to this device.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <mutex>
#include <optional>

#include "real/tensors/accelerator.h"
#include "real/tensors/torch_tensors.h"
#include "shared/seam/device.h"

namespace ferry::real {

class TorchCompute : public TorchTensors {
 public:
  using Stream = c10::Stream;
  using Event = std::shared_ptr<const c10::Event>;
  using Mutex = std::mutex;

  class StreamScope {
   public:
    StreamScope(const TorchCompute&, const Stream& stream) {
      if (runs_on(stream)) guard_.emplace(stream);
    }

   private:
    std::optional<c10::StreamGuard> guard_;
  };

  static Stream current_stream() {
    const auto accelerator = present_accelerator();
    if (!accelerator) return Stream(Stream::DEFAULT, c10::Device(c10::kCPU));
    const c10::impl::VirtualGuardImpl guard(*accelerator);
    return guard.getStream(guard.getDevice());
  }

  static Event record(Step, const Stream& stream) {
    if (!runs_on(stream)) return nullptr;
    auto event = std::make_shared<c10::Event>(stream.device_type());
    event->record(stream);
    return event;
  }
  static void wait(Step, const Stream& stream, const Event& event) {
    if (event) event->block(stream);
  }
  static void record_use(Step, const Storage& storage, const Stream& stream) {
    if (!storage || !runs_on(stream) || storage.device_type() != stream.device_type()) return;
    c10::impl::VirtualGuardImpl(stream.device_type())
        .recordDataPtrOnStream(storage.data_ptr(), stream);
  }

  // A tensor without a graph is returned as the same object, so code that compares the unpacked
  // object with the saved one finds them equal. Offloading cannot do this, because the program may
  // point that object at other bytes.
  static Tensor detach(const Tensor& tensor) {
    return tensor.requires_grad() ? TorchTensors::detach(tensor) : tensor;
  }

  static bool on_device(const Tensor& tensor) {
    const auto accelerator = present_accelerator();
    return accelerator && tensor.defined() && tensor.device().type() == *accelerator;
  }

 private:
  static bool runs_on(const Stream& stream) { return stream.device_type() != c10::kCPU; }
};

static_assert(ComputeDevice<TorchCompute>);

}  // namespace ferry::real
