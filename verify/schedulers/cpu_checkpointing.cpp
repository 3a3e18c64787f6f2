// DeepSpeed's activation checkpointing with cpu_checkpointing: inputs of a checkpoint go to the
// host.
// The oracles are tried on it, with or without its published fault (registry.h).
//
// In the faulty version, the non-reentrant variant empties the caller's tensors to free them at
// once, before the forward that must still read them.
#include <memory>
#include <utility>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

class CpuCheckpointing {
 public:
  CpuCheckpointing(sim::SimDevice device, sim::SimAutograd autograd, CpuCheckpointingPolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        copies_(device.lane(Lane::kDeviceToHost)) {}

  bool empty() const { return alive_ == 0; }

  // Returns null, to leave the tensor to autograd, if no checkpoint saves it.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    if (autograd_.saving_node() != "checkpoint") return nullptr;
    const StreamId compute = device_.current_stream();
    order(device_, Step::kProduced, compute, Step::kOffloadAfterProducer, copies_);
    auto input = std::make_unique<Input>(*this, offload(device_, tensor, copies_));
    device_.record_use(Step::kAbandon, tensor->storage, copies_);
    if (policy_.empties_inputs) tensor->storage = device_.allocate(Step::kUser, 0, compute);
    return input;
  }

 private:
  class Input final : public Saved<sim::Tensor> {
   public:
    Input(CpuCheckpointing& owner, HostCopy copy) : owner_(owner), copy_(std::move(copy)) {
      ++owner_.alive_;
    }
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;
    ~Input() override {
      give_back(owner_.device_, copy_.buffer, owner_.copies_);
      --owner_.alive_;
    }
    sim::Tensor unpack() override { return owner_.unpack(copy_); }

   private:
    CpuCheckpointing& owner_;
    HostCopy copy_;
  };

  sim::Tensor unpack(const HostCopy& copy) {
    const StreamId compute = device_.current_stream();
    sim::Tensor tensor = reload(device_, copy, copies_, copies_);
    order(device_, Step::kReloaded, copies_, Step::kConsume, compute);
    device_.record_use(Step::kEscaped, tensor->storage, compute);
    return tensor;
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const CpuCheckpointingPolicy policy_;
  const StreamId copies_;
  int alive_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_cpu_checkpointing(sim::SimDevice device,
                                                       sim::SimAutograd autograd,
                                                       CpuCheckpointingPolicy policy) {
  return sim::adapted<CpuCheckpointing>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
