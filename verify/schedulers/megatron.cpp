// Megatron-Core's fine-grained activation offloading.
// The oracles are tried on it, with or without its published faults (registry.h).
//
// The saves of a forward (a chunk) go to the host in groups on one stream, and come back on
// another. When the backward has popped a group, the group before it is reloaded; after the first
// group of a chunk, the last group of the next chunk is. A save that was not reloaded in time is
// reloaded when it is popped, on the compute stream. The page-locked pool is Megatron's own:
// buffers by size, first in, first out. One faulty version does not wait for the offload before it
// reloads a save on the compute stream. The other hands out a buffer whose reload still runs.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

constexpr std::size_t kGroup = 3;  // saves in a group
constexpr std::int64_t kBytesMin = 1024;

class Megatron {
 public:
  Megatron(sim::SimDevice device, sim::SimAutograd autograd, MegatronPolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        d2h_(device.lane(Lane::kDeviceToHost)),
        h2d_(device.lane(Lane::kHostToDevice)) {}

  void exempt(const sim::Tensor& tensor) { exempt_.insert(tensor.get()); }
  void begin_forward() { chunks_.push_back(std::make_shared<Chunk>()); }
  void finish() {
    for (const auto& chunk : chunks_) drop(*chunk);
    chunks_.clear();
    for (auto& [bytes, buffers] : pool_) {
      for (Pooled& pooled : buffers) {
        device_.release_host(Step::kHostReturn, std::move(pooled.buffer), {&pooled.reloaded, 1});
      }
    }
    pool_.clear();
  }
  bool empty() const { return chunks_.empty() && pool_.empty(); }

  // Returns null to leave the tensor to autograd.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    const bool forward = autograd_.graph_task() == GraphTaskId::kNone;
    if (!forward || bytes_of(tensor) < kBytesMin || exempt_.contains(tensor.get())) return nullptr;
    order(device_, Step::kProduced, device_.current_stream(), Step::kOffloadAfterProducer, d2h_);
    auto save = std::make_shared<Save>();
    save->copy = offload_to(device_, tensor, take(bytes_of(tensor)), d2h_);
    save->offloaded = device_.record(Step::kOffloaded, d2h_);
    device_.record_use(Step::kAbandon, tensor->storage, d2h_);
    const std::shared_ptr<Chunk>& chunk = chunks_.back();
    chunk->push_back(save);
    return std::make_unique<Pushed>(*this, chunk, chunk->size() - 1);
  }

 private:
  struct Save {
    HostCopy copy;
    sim::EventHandle offloaded;
    sim::Tensor tensor;  // reloaded and not popped yet
    sim::EventHandle reloaded;
    bool popped = false;
  };
  using Chunk = std::vector<std::shared_ptr<Save>>;
  struct Pooled {
    sim::HostBuffer buffer;
    sim::EventHandle reloaded;
  };

  class Pushed final : public Saved<sim::Tensor> {
   public:
    Pushed(Megatron& owner, std::shared_ptr<Chunk> chunk, std::size_t place)
        : owner_(owner), chunk_(std::move(chunk)), place_(place) {}
    sim::Tensor unpack() override { return owner_.pop(chunk_, place_); }

   private:
    Megatron& owner_;
    std::shared_ptr<Chunk> chunk_;
    std::size_t place_;
  };

  sim::HostBuffer take(std::int64_t bytes) {
    std::deque<Pooled>& buffers = pool_[bytes];
    if (buffers.empty()) return pinned(device_, bytes);
    Pooled pooled = std::move(buffers.front());
    buffers.pop_front();
    if (policy_.pool_waits) device_.wait(Step::kHostReturn, d2h_, pooled.reloaded);
    return std::move(pooled.buffer);
  }

  // Called as soon as the copy out of the buffer has been issued on `stream`.
  void put(sim::HostBuffer buffer, StreamId stream) {
    pool_[buffer.block->requested_bytes].push_back(
        {std::move(buffer), device_.record(Step::kReloaded, stream)});
  }

  sim::Tensor pop(const std::shared_ptr<Chunk>& chunk, std::size_t place) {
    const StreamId compute = device_.current_stream();
    Save& save = *(*chunk)[place];
    save.popped = true;
    if (save.tensor) {
      device_.wait(Step::kConsume, compute, save.reloaded);
    } else {
      if (policy_.inline_reload_waits) {
        device_.wait(Step::kReloadAfterOffload, compute, save.offloaded);
      }
      save.tensor = reload(device_, save.copy, compute, compute);
      put(std::move(save.copy.buffer), compute);
    }
    sim::Tensor tensor = std::exchange(save.tensor, nullptr);
    if (place % kGroup == 0) bring_group_before(chunk, place);
    return tensor;
  }

  void bring_group_before(const std::shared_ptr<Chunk>& chunk, std::size_t place) {
    if (place > 0) return bring(*chunk, place - kGroup);
    std::erase(chunks_, chunk);
    drop(*chunk);
    if (!chunks_.empty() && !chunks_.front()->empty()) {
      const Chunk& next = *chunks_.front();
      bring(next, (next.size() - 1) / kGroup * kGroup);
    }
  }

  // Reloads the group that begins at `begin`. The copies wait for the compute stream, which
  // used the target blocks before.
  void bring(const Chunk& chunk, std::size_t begin) {
    order(device_, Step::kReady, device_.current_stream(), Step::kReloadAfterReady, h2d_);
    for (std::size_t i = begin; i < std::min(begin + kGroup, chunk.size()); ++i) {
      Save& save = *chunk[i];
      if (save.popped || save.tensor) continue;
      device_.wait(Step::kReloadAfterOffload, h2d_, save.offloaded);
      save.tensor = reload(device_, save.copy, h2d_, h2d_);
      save.reloaded = device_.record(Step::kReloaded, h2d_);
      put(std::move(save.copy.buffer), h2d_);
    }
  }

  // Drops the saves that were never popped.
  void drop(Chunk& chunk) {
    for (const auto& save : chunk) {
      if (save->copy.buffer.block) give_back(device_, save->copy.buffer, d2h_);
      save->tensor = nullptr;
    }
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const MegatronPolicy policy_;
  const StreamId d2h_;
  const StreamId h2d_;
  std::set<const sim::TensorImpl*> exempt_;
  std::deque<std::shared_ptr<Chunk>> chunks_;  // before their backward, oldest first
  std::map<std::int64_t, std::deque<Pooled>> pool_;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_megatron(sim::SimDevice device, sim::SimAutograd autograd,
                                              MegatronPolicy policy) {
  return sim::adapted<Megatron>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
