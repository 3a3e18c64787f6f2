#include "real/pipeline/torch_pipe_device.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstddef>
#include <optional>

#include "shared/transfer/transfer.h"

namespace ferry::real {

namespace {

c10::Device known(c10::Device device) {
  if (device.is_cpu()) return c10::Device(c10::kCPU);
  if (device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

c10::Stream cpu_stream() { return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCPU)); }

}  // namespace

// Streams of LibTorch's pool, which has 32 for a device. All pipelines share them.
struct TorchPipeDevice::Streams {
  explicit Streams(c10::Device device) : departures(from_pool(device)) {
    for (auto& stream : arrivals) stream = from_pool(device);
  }
  static Stream from_pool(c10::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  }
  Stream departures;
  std::array<std::optional<Stream>, kArrivalStreams> arrivals;  // one per micro-batch, in rotation
};

TorchPipeDevice::TorchPipeDevice(c10::Device device) : device_(known(device)) {
  if (!device_.is_cpu()) streams_ = std::make_shared<Streams>(device_);
}

c10::Stream TorchPipeDevice::current_stream() const {
  if (!streams_) return cpu_stream();
  const c10::impl::VirtualGuardImpl guard(device_.type());
  return guard.getStream(guard.getDevice());
}

c10::Stream TorchPipeDevice::compute_stream() const {
  return streams_ ? c10::impl::VirtualGuardImpl(device_.type()).getStream(device_) : cpu_stream();
}

c10::Stream TorchPipeDevice::transfer_stream(std::uint32_t microbatch) const {
  if (!streams_) return cpu_stream();
  return *streams_->arrivals[microbatch % streams_->arrivals.size()];
}

void TorchPipeDevice::wait(Step, const Stream& stream, const Event& event) {
  if (!event) return;
  if (stream.device_type() == c10::kCPU) {
    event->synchronize();
  } else {
    event->block(stream);
  }
}

at::Tensor TorchPipeDevice::transfer(Step, const Tensor& tensor, TorchPipeDevice& other,
                                     const Stream& stream) const {
  if (tensor.device() == other.device_) return TorchTensors::detach(tensor);
  std::optional<c10::StreamGuard> source;
  std::optional<c10::StreamGuard> target;
  if (streams_) source.emplace(streams_->departures);
  if (other.streams_) target.emplace(stream);
  if (source && target && !tensor.is_contiguous()) {
    // For such a tensor LibTorch may first make a contiguous one (copy_requires_temporaries in
    // ATen/native/cuda/Copy.cu), before its barriers. So the source stream waits for the sent work
    // here.
    c10::Event sent(device_.type());
    sent.record(stream);
    sent.block(streams_->departures);
  }
  const c10::AutoGradMode no_grad(false);
  Tensor arrived = at::empty_like(tensor, tensor.options().device(other.device_));
  // The host waits for a copy to the CPU, because nothing else would.
  arrived.copy_(tensor, /*non_blocking=*/!other.device_.is_cpu());
  return arrived;
}

}  // namespace ferry::real
