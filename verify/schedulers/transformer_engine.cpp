// TransformerEngine's activation offloading, layer by layer, with or without its published fault.
// ferry verify --schedulers runs both, to see whether the oracles find the fault. The entries are
// in other_entries.cpp.
//
// Every three saves count as a layer. The saves of a layer go to the host one by one. They come
// back together, one layer before their use, on one stream, into blocks of the compute stream's
// pool. When backward begins a layer, it drops everything of the other layers. The compute stream
// has waited for the copy of each used tensor, but not for the copy of an unused one: that is the
// fault. With `waits_for_unused` it waits for this copy before the tensor is dropped.
#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

constexpr std::size_t kLayer = 3;  // saves in a layer
constexpr std::int64_t kBytesMin = 1024;

class TransformerEngine {
 public:
  TransformerEngine(sim::SimDevice device, sim::SimAutograd autograd,
                    TransformerEnginePolicy policy)
      : device_(device),
        autograd_(autograd),
        policy_(policy),
        copies_(device.lane(Lane::kDeviceToHost)) {}

  void exempt(const sim::Tensor& tensor) { exempt_.insert(tensor.get()); }
  void begin_forward() { clear(); }
  void finish() { clear(); }
  bool empty() const { return saves_.empty(); }

  // Returns null to leave the tensor to autograd.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    const bool forward = autograd_.graph_task() == GraphTaskId::kNone;
    if (!forward || bytes_of(tensor) < kBytesMin || exempt_.contains(tensor.get())) return nullptr;
    if (saves_.size() % kLayer == 0) sync_offloads();
    order(device_, Step::kProduced, device_.current_stream(), Step::kOffloadAfterProducer, copies_);
    auto save = std::make_shared<Save>();
    save->copy = offload(device_, tensor, copies_);
    sources_.push_back(device_.detach(tensor));
    saves_.push_back(save);
    layer_ = layers();
    return std::make_unique<Pushed>(*this, saves_.size() - 1);
  }

 private:
  struct Save {
    HostCopy copy;
    sim::Tensor tensor;  // on the device again
    sim::EventHandle reloaded;
    bool used = false;
  };

  class Pushed final : public Saved<sim::Tensor> {
   public:
    Pushed(TransformerEngine& owner, std::size_t place) : owner_(owner), place_(place) {}
    sim::Tensor unpack() override { return owner_.pop(place_); }

   private:
    TransformerEngine& owner_;
    std::size_t place_;
  };

  std::size_t layers() const { return (saves_.size() + kLayer - 1) / kLayer; }

  // Makes the current stream wait for all copies to the host so far, and drops their sources.
  void sync_offloads() {
    if (sources_.empty()) return;
    order(device_, Step::kOffloaded, copies_, Step::kEvict, device_.current_stream());
    sources_.clear();
  }

  sim::Tensor pop(std::size_t place) {
    if (place / kLayer != layer_) begin_layer(place / kLayer);
    Save& save = *saves_[place];
    device_.wait(Step::kConsume, device_.current_stream(), save.reloaded);
    save.used = true;
    return save.tensor;
  }

  void begin_layer(std::size_t layer) {
    sync_offloads();
    for (std::size_t other = 0; other < layers(); ++other) {
      if (other != layer) release(other);
    }
    layer_ = layer;
    bring(layer);
    if (layer > 0) bring(layer - 1);
  }

  void bring(std::size_t layer) {
    const StreamId compute = device_.current_stream();
    order(device_, Step::kReady, compute, Step::kReloadAfterReady, copies_);
    for (std::size_t i = layer * kLayer; i < saves_.size() && i < (layer + 1) * kLayer; ++i) {
      Save& save = *saves_[i];
      if (save.tensor) continue;
      save.tensor = reload(device_, save.copy, compute, copies_);
      save.reloaded = device_.record(Step::kReloaded, copies_);
      save.used = false;
    }
  }

  void release(std::size_t layer) {
    for (std::size_t i = layer * kLayer; i < saves_.size() && i < (layer + 1) * kLayer; ++i) {
      Save& save = *saves_[i];
      if (save.tensor && !save.used && policy_.waits_for_unused) {
        device_.wait(Step::kDiscard, device_.current_stream(), save.reloaded);
      }
      save.tensor = nullptr;
      save.reloaded = nullptr;
    }
  }

  void clear() {
    sync_offloads();
    for (std::size_t layer = 0; layer < layers(); ++layer) release(layer);
    for (const auto& save : saves_) give_back(device_, save->copy.buffer, copies_);
    saves_.clear();
    layer_ = 0;
  }

  sim::SimDevice device_;
  sim::SimAutograd autograd_;
  const TransformerEnginePolicy policy_;
  const StreamId copies_;
  std::set<const sim::TensorImpl*> exempt_;
  std::vector<std::shared_ptr<Save>> saves_;  // of the current forward
  std::vector<sim::Tensor> sources_;          // sources of copies that nothing has waited for yet
  std::size_t layer_ = 0;                     // layer of backward; else the number of layers
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_transformer_engine(sim::SimDevice device,
                                                        sim::SimAutograd autograd,
                                                        TransformerEnginePolicy policy) {
  return sim::adapted<TransformerEngine>(device, autograd, policy);
}

}  // namespace ferry::verify::schedulers
