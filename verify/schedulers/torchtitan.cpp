// torchtitan's activation offloading with a slab of host slots (PR #2581).
// The oracles are tried on it, with or without its published fault (registry.h).
//
// The i-th save of a forward always goes to slot i. So a copy into a slot must follow the previous
// step's copy out of it. Only the compute stream orders the two, because it waited for the copy
// out. In the faulty version, the copy stream waits for itself instead of the compute stream.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

constexpr std::int64_t kBytesMin = 1024;

class Torchtitan {
 public:
  Torchtitan(sim::SimDevice device, sim::SimAutograd autograd, TorchtitanPolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        d2h_(device.lane(Lane::kDeviceToHost)),
        h2d_(device.lane(Lane::kHostToDevice)) {}

  void begin_forward() { next_ = 0; }
  void finish() {
    for (sim::HostBuffer& slot : slots_) give_back(device_, slot, h2d_);
    slots_.clear();
  }
  bool empty() const { return slots_.empty(); }

  // Returns null to leave the tensor to autograd.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    const bool forward = autograd_.graph_task() == GraphTaskId::kNone;
    if (!forward || bytes_of(tensor) < kBytesMin) return nullptr;
    const StreamId compute = device_.current_stream();
    const StreamId current = policy_.waits_for_compute ? compute : d2h_;
    order(device_, Step::kProduced, current, Step::kOffloadAfterProducer, d2h_);
    HostCopy copy = offload_to(device_, tensor, slot(bytes_of(tensor)), d2h_);
    device_.record_use(Step::kAbandon, tensor->storage, d2h_);
    return std::make_unique<Moved>(*this, std::move(copy), device_.record(Step::kOffloaded, d2h_));
  }

 private:
  class Moved final : public Saved<sim::Tensor> {
   public:
    Moved(Torchtitan& owner, HostCopy copy, sim::EventHandle offloaded)
        : owner_(owner), copy_(std::move(copy)), offloaded_(std::move(offloaded)) {}
    sim::Tensor unpack() override { return owner_.unpack(copy_, offloaded_); }

   private:
    Torchtitan& owner_;
    HostCopy copy_;
    sim::EventHandle offloaded_;
  };

  // Returns the next slot. The slab keeps it.
  sim::HostBuffer slot(std::int64_t bytes) {
    if (next_ == slots_.size()) slots_.push_back(pinned(device_, bytes));
    sim::HostBuffer& slot = slots_[next_++];
    if (slot.block->requested_bytes < bytes) {
      give_back(device_, slot, h2d_);
      slot = pinned(device_, bytes);
    }
    return first_bytes(slot, bytes);
  }

  sim::Tensor unpack(const HostCopy& copy, const sim::EventHandle& offloaded) {
    const StreamId compute = device_.current_stream();
    device_.wait(Step::kReloadAfterOffload, h2d_, offloaded);
    order(device_, Step::kReady, compute, Step::kReloadAfterReady, h2d_);
    sim::Tensor tensor = reload(device_, copy, compute, h2d_);
    order(device_, Step::kReloaded, h2d_, Step::kConsume, compute);
    return tensor;
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const TorchtitanPolicy policy_;
  const StreamId d2h_;
  const StreamId h2d_;
  std::vector<sim::HostBuffer> slots_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_torchtitan(sim::SimDevice device, sim::SimAutograd autograd,
                                                TorchtitanPolicy policy) {
  return sim::adapted<Torchtitan>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
