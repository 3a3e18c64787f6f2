// verl's (and ms-swift's) activation offloading in groups.
// The oracles are tried on it, with or without its published fault (registry.h).
//
// Saves of one group with the same address and dtype share one copy. In the faulty version the key
// of the copy lacks shapes and strides. So a later save gets the elements of the first one in the
// first one's order, with its own shape.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "verify/schedulers/systems.h"

namespace ferry::verify::schedulers {
namespace {

constexpr int kGroup = 6;  // saves in a group
constexpr std::int64_t kBytesMin = 1024;

class Verl {
 public:
  Verl(sim::SimDevice device, VerlPolicy policy)
      : device_(device),
        policy_(policy),
        d2h_(device.lane(Lane::kDeviceToHost)),
        h2d_(device.lane(Lane::kHostToDevice)) {}

  void exempt(const sim::Tensor& tensor) { exempt_.insert(tensor.get()); }
  void begin_forward() { end_group(); }
  void finish() { end_group(); }
  bool empty() const { return group_.empty() && alive_ == 0; }

  // Returns null to leave the tensor to autograd.
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) {
    if (bytes_of(tensor) < kBytesMin || exempt_.contains(tensor.get())) return nullptr;
    if (++packs_ % kGroup == 0) end_group();
    const Layout& layout = tensor->layout.window->layout;
    Key key{sim::range_of(tensor).address, layout.dtype, {}, {}};
    if (policy_.key_has_layout) {
      key.shape = layout.shape;
      key.strides = layout.strides;
    }
    std::shared_ptr<Copy>& copy = group_[key];
    if (!copy) copy = send(tensor);
    return std::make_unique<Shared>(*this, copy, tensor->layout.window);
  }

 private:
  struct Key {
    std::uint64_t address;
    DType dtype;
    std::vector<std::int64_t> shape, strides;
    auto operator<=>(const Key&) const = default;
  };
  struct Copy {
    Copy(Verl& owner, HostCopy host_copy, sim::Tensor saved)
        : verl(owner), host(std::move(host_copy)), source(std::move(saved)) {
      ++verl.alive_;
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    ~Copy() {
      give_back(verl.device_, host.buffer, verl.h2d_);
      --verl.alive_;
    }
    Verl& verl;
    HostCopy host;
    sim::EventHandle offloaded;
    sim::Tensor source;  // kept until its group ends
  };

  class Shared final : public Saved<sim::Tensor> {
   public:
    Shared(Verl& owner, std::shared_ptr<Copy> copy, std::shared_ptr<const sim::Window> window)
        : owner_(owner), copy_(std::move(copy)), window_(std::move(window)) {}
    sim::Tensor unpack() override { return owner_.unpack(*copy_, window_->layout); }

   private:
    Verl& owner_;
    std::shared_ptr<Copy> copy_;
    std::shared_ptr<const sim::Window> window_;
  };

  std::shared_ptr<Copy> send(const sim::Tensor& tensor) {
    order(device_, Step::kProduced, device_.current_stream(), Step::kOffloadAfterProducer, d2h_);
    auto copy =
        std::make_shared<Copy>(*this, offload(device_, tensor, d2h_), device_.detach(tensor));
    copy->offloaded = device_.record(Step::kOffloaded, d2h_);
    return copy;
  }

  void end_group() {
    if (group_.empty()) return;
    order(device_, Step::kOffloaded, d2h_, Step::kEvict, device_.current_stream());
    for (const auto& [key, copy] : group_) copy->source = nullptr;
    group_.clear();
  }

  sim::Tensor unpack(const Copy& copy, const Layout& wanted) {
    end_group();
    const StreamId compute = device_.current_stream();
    device_.wait(Step::kReloadAfterOffload, h2d_, copy.offloaded);
    order(device_, Step::kReady, compute, Step::kReloadAfterReady, h2d_);
    sim::Tensor tensor = reload(device_, copy.host, h2d_, h2d_);
    order(device_, Step::kReloaded, h2d_, Step::kConsume, compute);
    return viewed(std::move(tensor), wanted.shape);
  }

  // Views the elements of the first save as Tensor.view does.
  sim::Tensor viewed(sim::Tensor tensor, const std::vector<std::int64_t>& shape) {
    const Layout& first = tensor->layout.window->layout;
    if (first.shape == shape) return tensor;
    if (numel(first.shape) != numel(shape)) {
      throw std::runtime_error("view: the shape is invalid for the size of the input");
    }
    const Layout layout = contiguous_layout(first.dtype, shape);
    const Hull bytes = hull(layout);
    tensor->layout = {
        std::make_shared<sim::Window>(sim::Window{layout, {bytes.begin_bytes, bytes.end_bytes}}),
        0};
    return tensor;
  }

  sim::SimDevice device_;
  const VerlPolicy policy_;
  const StreamId d2h_;
  const StreamId h2d_;
  std::set<const sim::TensorImpl*> exempt_;
  std::map<Key, std::shared_ptr<Copy>> group_;
  int packs_ = 0;
  int alive_ = 0;
};

}  // namespace

std::unique_ptr<sim::Scheduler> make_verl(sim::SimDevice device, sim::SimAutograd,
                                          VerlPolicy policy) {
  return sim::adapted<Verl>(device, policy);
}

}  // namespace ferry::verify::schedulers
