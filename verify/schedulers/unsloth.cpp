// Unsloth's gradient checkpointing: the input of each checkpoint goes to a numbered host buffer.
// The oracles are tried on it, with or without its published fault (registry.h).
//
// The first forward after the start of a backward numbers from 0 again. The recompute of an outer
// checkpoint runs such a forward, with the inner checkpoints, while earlier inputs are still
// needed. This overwrites them. No fix is published; here, the fixed version takes the first free
// buffer.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

class Unsloth {
 public:
  Unsloth(sim::SimDevice device, sim::SimAutograd autograd, UnslothPolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        copies_(device.lane(Lane::kDeviceToHost)) {}

  void finish() {
    wait_for_source();
    for (Slot& slot : slots_) give_back(device_, slot.buffer, copies_);
    slots_.clear();
  }
  bool empty() const { return slots_.empty() && alive_ == 0; }

  // Returns null, to leave the tensor to autograd, if no checkpoint saves it.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    if (autograd_.saving_node() != "checkpoint") return nullptr;
    if (backward_began_) next_ = 0;
    backward_began_ = false;
    wait_for_source();
    order(device_, Step::kProduced, device_.current_stream(), Step::kOffloadAfterProducer, copies_);
    const std::size_t number = policy_.restarts ? next_++ : first_free();
    HostCopy copy = offload_to(device_, tensor, slot(number, bytes_of(tensor)), copies_);
    source_ = device_.detach(tensor);
    return std::make_unique<Input>(*this, std::move(copy), number);
  }

 private:
  struct Slot {
    sim::HostBuffer buffer;
    int inputs = 0;
  };

  class Input final : public Saved<sim::Tensor> {
   public:
    Input(Unsloth& owner, HostCopy copy, std::size_t slot)
        : owner_(owner), copy_(std::move(copy)), slot_(slot) {
      ++owner_.slots_[slot_].inputs;
      ++owner_.alive_;
    }
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;
    ~Input() override {
      if (slot_ < owner_.slots_.size()) --owner_.slots_[slot_].inputs;
      --owner_.alive_;
    }
    // Copies from the buffer with this number, whatever it contains now.
    sim::Tensor unpack() override {
      copy_.buffer = first_bytes(owner_.slots_[slot_].buffer, copy_.layout.extent().bytes());
      return owner_.unpack(copy_);
    }

   private:
    Unsloth& owner_;
    HostCopy copy_;
    std::size_t slot_;
  };

  std::size_t first_free() const {
    std::size_t number = 0;
    while (number < slots_.size() && slots_[number].inputs > 0) ++number;
    return number;
  }

  sim::HostBuffer slot(std::size_t number, std::int64_t bytes) {
    if (number == slots_.size()) slots_.push_back({pinned(device_, bytes)});
    sim::HostBuffer& buffer = slots_[number].buffer;
    if (buffer.block->requested_bytes < bytes) {
      give_back(device_, buffer, copies_);
      buffer = pinned(device_, bytes);
    }
    return first_bytes(buffer, bytes);
  }

  // Called at the end of the block that has the input.
  void wait_for_source() {
    if (!source_) return;
    order(device_, Step::kOffloaded, copies_, Step::kEvict, device_.current_stream());
    source_ = nullptr;
  }

  sim::Tensor unpack(const HostCopy& copy) {
    wait_for_source();
    backward_began_ = policy_.restarts;
    const StreamId compute = device_.current_stream();
    order(device_, Step::kReady, compute, Step::kReloadAfterReady, copies_);
    sim::Tensor tensor = reload(device_, copy, compute, copies_);
    order(device_, Step::kReloaded, copies_, Step::kConsume, compute);
    return tensor;
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const UnslothPolicy policy_;
  const StreamId copies_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  bool backward_began_ = false;
  sim::Tensor source_;
  int alive_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_unsloth(sim::SimDevice device, sim::SimAutograd autograd,
                                             UnslothPolicy policy) {
  return sim::adapted<Unsloth>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
