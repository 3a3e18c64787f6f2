// DeepSpeed's DeepCompile, which puts copies into the compiled forward and backward graphs.
// The oracles are tried on it, with or without its published fault (registry.h).
//
// In the faulty version, each value of the graph (here the i-th save of a forward) has one host
// buffer. A second forward before the backward overwrites it.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

constexpr std::int64_t kBytesMin = 1024;

class DeepCompile {
 public:
  DeepCompile(sim::SimDevice device, sim::SimAutograd autograd, DeepCompilePolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        offloads_(device.lane(Lane::kDeviceToHost)),
        reloads_(device.lane(Lane::kHostToDevice)) {}

  void begin_forward() { next_value_ = 0; }
  void finish() {
    for (sim::HostBuffer& buffer : buffers_) give_back(device_, buffer, reloads_);
    buffers_.clear();
  }
  bool empty() const { return buffers_.empty() && alive_ == 0; }

  // Returns null to leave the tensor to autograd.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    const bool forward = autograd_.graph_task() == GraphTaskId::kNone;
    if (!forward || bytes_of(tensor) < kBytesMin) return nullptr;
    const StreamId compute = device_.current_stream();
    order(device_, Step::kProduced, compute, Step::kOffloadAfterProducer, offloads_);
    HostCopy copy = offload_to(device_, tensor, buffer(bytes_of(tensor)), offloads_);
    order(device_, Step::kOffloaded, offloads_, Step::kEvict, compute);  // without delay
    return std::make_unique<Moved>(*this, std::move(copy));
  }

 private:
  class Moved final : public Saved<sim::Tensor> {
   public:
    Moved(DeepCompile& owner, HostCopy copy) : owner_(owner), copy_(std::move(copy)) {
      ++owner_.alive_;
    }
    Moved(const Moved&) = delete;
    Moved& operator=(const Moved&) = delete;
    ~Moved() override {
      if (!owner_.policy_.buffer_per_value) {
        give_back(owner_.device_, copy_.buffer, owner_.reloads_);
      }
      --owner_.alive_;
    }
    sim::Tensor unpack() override { return owner_.unpack(copy_); }

   private:
    DeepCompile& owner_;
    HostCopy copy_;
  };

  sim::HostBuffer buffer(std::int64_t bytes) {
    if (!policy_.buffer_per_value) return pinned(device_, bytes);
    if (next_value_ == buffers_.size()) {
      buffers_.push_back(pinned(device_, bytes));
    }
    sim::HostBuffer& buffer = buffers_[next_value_++];
    if (buffer.block->requested_bytes < bytes) {  // it belongs to another graph
      give_back(device_, buffer, reloads_);
      buffer = pinned(device_, bytes);
    }
    return first_bytes(buffer, bytes);
  }

  sim::Tensor unpack(const HostCopy& copy) {
    const StreamId compute = device_.current_stream();
    order(device_, Step::kReady, compute, Step::kReloadAfterReady, reloads_);
    sim::Tensor tensor = reload(device_, copy, reloads_, reloads_);
    order(device_, Step::kReloaded, reloads_, Step::kConsume, compute);
    return tensor;
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const DeepCompilePolicy policy_;
  const StreamId offloads_;
  const StreamId reloads_;
  std::vector<sim::HostBuffer> buffers_;  // by number of the value
  std::size_t next_value_ = 0;
  int alive_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_deep_compile(sim::SimDevice device, sim::SimAutograd autograd,
                                                  DeepCompilePolicy policy) {
  return sim::adapted<DeepCompile>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
