// A scheduler of one's own, hunted: it sends what autograd saves to the host, and brings it back.
// It has a fault, as published ones had: see kForgets. `mended` is the same without it.
#include <ferry/verify.h>

#include <memory>
#include <utility>

using ferry::Step;

template <class D, class A, bool kForgets>
class Sends {
 public:
  using Tensor = typename D::Tensor;

  Sends(D device, A) : device_(device) {}

  std::unique_ptr<ferry::Saved<Tensor>> pack(const Tensor& tensor) {
    const auto copies = device_.lane(ferry::Lane::kDeviceToHost);
    const auto layout = device_.layout(tensor);
    const ferry::Extent bytes = device_.extent(layout);
    const auto storage = device_.storage(tensor);
    const auto produced = device_.record(Step::kProduced, device_.current_stream());
    device_.wait(Step::kOffloadAfterProducer, copies, produced);
    auto host = device_.allocate_host(Step::kHostAllocate, bytes.bytes(), {});
    device_.offload(Step::kOffload, storage, bytes.begin, host, copies);
    device_.record_use(Step::kAbandon, storage, copies);  // its block waits for the copy
    return std::make_unique<Sent>(device_, std::move(host), layout, device_.version(tensor));
  }

 private:
  class Sent final : public ferry::Saved<Tensor> {
   public:
    Sent(D device, typename D::HostBuffer host, typename D::Layout layout,
         typename D::Version version)
        : device_(device),
          host_(std::move(host)),
          layout_(layout),
          version_(version),
          saved_at_(device.read(version)),
          copied_(device.record(Step::kOffloaded, device.lane(ferry::Lane::kDeviceToHost))) {}
    ~Sent() override { device_.release_host(Step::kHostReturn, std::move(host_), {&copied_, 1}); }

    Tensor unpack() override {
      const auto now = device_.read(version_);
      if (now != saved_at_) throw ferry::make_error<Tensor>(ferry::ModifiedInPlace(now, saved_at_));
      const auto compute = device_.current_stream();
      const auto copies = device_.lane(ferry::Lane::kHostToDevice);
      const ferry::Extent bytes = device_.extent(layout_);
      const auto target = device_.allocate(Step::kReloadAllocate, bytes.bytes(), compute);
      const auto ready = device_.record(Step::kReady, compute);
      device_.wait(Step::kReloadAfterReady, copies, ready);
      if (!kForgets) device_.wait(Step::kReloadAfterOffload, copies, copied_);
      device_.reload(Step::kReload, host_, target, copies);
      copied_ = device_.record(Step::kReloaded, copies);
      device_.wait(Step::kConsume, compute, copied_);
      return device_.restore(target, layout_, bytes.begin, version_);
    }

   private:
    D device_;
    typename D::HostBuffer host_;
    typename D::Layout layout_;
    typename D::Version version_;
    std::uint64_t saved_at_;
    typename D::Event copied_;  // the last copy from the host bytes, or to them
  };

  D device_;
};

template <class D, class A>
using Forgetful = Sends<D, A, true>;
template <class D, class A>
using Mended = Sends<D, A, false>;

int main(int argc, char** argv) {
  using ferry::verify::hunted;
  return ferry::verify::hunt_main(argc, argv,
                                  {hunted<Forgetful>("forgetful"), hunted<Mended>("mended")});
}
