// torch.autograd.graph.save_on_cpu with copies on a second stream (pytorch #106360).
// The oracles are tried on it, with or without its published fault (registry.h).
//
// A restored tensor is allocated in the pool of the copy stream. After its node, the block returns
// to this pool. In the faulty version nothing stops the copy stream from writing to the block while
// the node still reads it.
#include <memory>
#include <utility>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

class SaveOnCpu {
 public:
  SaveOnCpu(sim::SimDevice device, SaveOnCpuPolicy policy)
      : device_(device), policy_(policy), copies_(device.lane(Lane::kDeviceToHost)) {}

  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    const StreamId compute = device_.current_stream();
    order(device_, Step::kProduced, compute, Step::kOffloadAfterProducer, copies_);
    auto moved = std::make_unique<Moved>(*this, offload(device_, tensor, copies_));
    device_.record_use(Step::kAbandon, tensor->storage, copies_);
    return moved;
  }
  bool empty() const { return alive_ == 0; }

 private:
  class Moved final : public Saved<sim::Tensor> {
   public:
    Moved(SaveOnCpu& owner, HostCopy copy) : owner_(owner), copy_(std::move(copy)) {
      ++owner_.alive_;
    }
    Moved(const Moved&) = delete;
    Moved& operator=(const Moved&) = delete;
    ~Moved() override {
      give_back(owner_.device_, copy_.buffer, owner_.copies_);
      --owner_.alive_;
    }
    sim::Tensor unpack() override { return owner_.unpack(copy_); }

   private:
    SaveOnCpu& owner_;
    HostCopy copy_;
  };

  sim::Tensor unpack(const HostCopy& copy) {
    const StreamId compute = device_.current_stream();
    sim::Tensor tensor = reload(device_, copy, copies_, copies_);
    order(device_, Step::kReloaded, copies_, Step::kConsume, compute);
    if (policy_.records_use) device_.record_use(Step::kEscaped, tensor->storage, compute);
    return tensor;
  }

  sim::SimDevice device_;
  const SaveOnCpuPolicy policy_;
  const StreamId copies_;
  int alive_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_save_on_cpu(sim::SimDevice device, sim::SimAutograd,
                                                 SaveOnCpuPolicy policy) {
  return sim::adapted<SaveOnCpu>(device, policy);
}

}  // namespace ferry::verify::schedulers
