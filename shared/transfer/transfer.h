// Transfers the results of a stage to another device, for one micro-batch.
//
//     from compute   ──make x──● sent
//                              │
//                              ▼ receive after sent
//     to arrivals    ────────────── receive x' ──● received        (x: send in use)
//                                                │
//                                                ▼ take received
//     to compute     ──────────────────────────────── use x'       (x': received in use)
//
// The copy runs on a stream of the receiving device on which nothing else runs, so it never waits
// for other work of that device. Gradients move back in the same way. Between stages on one device
// nothing is copied and nothing waits.
//
// Source: torchgpipe/copy.py and its Wait, where the copy occupies a stream at both ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shared/seam/device.h"
#include "shared/seam/invariant.h"

namespace ferry {

// The number of arrival streams per device. Micro-batches use them in rotation. More streams would
// rarely give more overlap, and each has a pool whose unused blocks no other stream can use.
inline constexpr std::uint32_t kArrivalStreams = 8;

// A device with the streams that one micro-batch uses.
template <PipelineDevice D>
struct Place {
  std::size_t number = 0;  // number of the device
  D device;
  typename D::Stream compute;
  typename D::Stream arrivals;
};

template <PipelineDevice D>
class Transfer {
 public:
  using Tensor = typename D::Tensor;

  Transfer(Place<D> from, Place<D> to) : from_(std::move(from)), to_(std::move(to)) {}
  Transfer back() const { return {to_, from_}; }
  const Place<D>& from() const { return from_; }
  const Place<D>& to() const { return to_; }

  // Lets the receiving device start after everything computed so far.
  void send() {
    if (here()) return;
    to_.device.wait(Step::kReceiveAfterSent, to_.arrivals,
                    from_.device.record(Step::kSent, from_.compute));
  }
  Tensor receive(const Tensor& tensor) {
    if (here()) return from_.device.detach(tensor);
    // This comes before the copy: if it fails, nothing reads the source.
    from_.device.record_use(Step::kSendInUse, from_.device.storage(tensor), to_.arrivals);
    Tensor arrived = from_.device.transfer(Step::kReceive, tensor, to_.device, to_.arrivals);
    invariant(to_.device.on_device(arrived), "what is received lies on the device that receives",
              Step::kReceive);
    return arrived;
  }
  // Lets work that is enqueued from now on use the arrived tensors.
  void take(std::span<const Tensor> arrived) {
    if (here()) return;
    to_.device.wait(Step::kTakeReceived, to_.compute,
                    to_.device.record(Step::kReceived, to_.arrivals));
    for (const Tensor& tensor : arrived) {
      invariant(to_.device.on_device(tensor), "what is taken has arrived", Step::kTakeReceived);
      to_.device.record_use(Step::kReceivedInUse, to_.device.storage(tensor), to_.compute);
    }
  }

 private:
  bool here() const { return from_.number == to_.number; }
  Place<D> from_;
  Place<D> to_;
};

}  // namespace ferry
