// Schedulers as a user writes them, each with one thing wrong, or none.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ferry/verify.h"

namespace ferry::verify::test {

enum class Wrong {
  kNothing,
  kKeepsTensors,     // nothing moves
  kWaitsForNothing,  // the copy does not wait for the producer
  kAsksNoVersion,    // a saved tensor that was written comes back
  kThrowsAlone,      // an error that programs cannot catch
  kLeaksHost,        // host bytes stay
  kGivesBackEarly,   // host bytes, though the record of their last copy's end failed
  kSaysItHolds,      // empty() is false
};

// Sends each saved tensor to the host on one copy stream, and brings it back on another one, in the
// consumer's pool.
template <class D, class A>
class Sends {
 public:
  using Tensor = typename D::Tensor;
  Sends(D device, A, Wrong wrong)
      : device_(device),
        wrong_(wrong),
        copies_(device.lane(Lane::kDeviceToHost)),
        back_(device.lane(Lane::kHostToDevice)) {}

  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) {
    if (wrong_ == Wrong::kKeepsTensors) return nullptr;
    return std::make_unique<Sent>(*this, tensor);
  }
  void begin_forward() { ++forwards_; }
  void exempt(const Tensor&) { ++exempt_; }
  // Whoever ends it has waited for the device.
  ~Sends() {
    for (auto& host : unsafe_) device_.release_host(Step::kHostReturn, std::move(host), {});
  }
  bool empty() const { return wrong_ != Wrong::kSaysItHolds; }

 private:
  class Sent final : public Saved<Tensor> {
   public:
    // What fails here leaves the bytes to the destructor of `host_`'s owner: this one, made first.
    Sent(Sends& owner, const Tensor& tensor)
        : owner_(owner),
          layout_(owner.device_.layout(tensor)),
          version_(owner.device_.version(tensor)),
          saved_at_(owner.device_.read(version_)) {
      D& device = owner_.device_;
      if (owner_.wrong_ != Wrong::kWaitsForNothing) {
        const auto produced = device.record(Step::kProduced, device.current_stream());
        device.wait(Step::kOffloadAfterProducer, owner_.copies_, produced);
      }
      const Extent bytes = device.extent(layout_);
      // The pool waits for this copy before it is made: what comes after cannot fail to protect it.
      device.record_use(Step::kAbandon, device.storage(tensor), owner_.copies_);
      host_ = device.allocate_host(Step::kHostAllocate, bytes.bytes(), HostMemory::kPinned);
      try {
        device.offload(Step::kOffload, device.storage(tensor), bytes.begin, host_, owner_.copies_);
        ends_.push_back(end_of_copy(Step::kOffloaded, owner_.copies_));
      } catch (...) {
        give_back();
        throw;
      }
    }
    Sent(const Sent&) = delete;
    Sent& operator=(const Sent&) = delete;
    ~Sent() override {
      if (owner_.wrong_ != Wrong::kLeaksHost) give_back();
    }

    Tensor unpack() override {
      D& device = owner_.device_;
      const auto now = device.read(version_);
      const ModifiedInPlace alone(now, saved_at_);
      if (owner_.wrong_ == Wrong::kThrowsAlone) throw alone;
      if (now != saved_at_ && owner_.wrong_ != Wrong::kAsksNoVersion) {
        throw make_error<Tensor>(alone);
      }
      const auto compute = device.current_stream();
      const Extent bytes = device.extent(layout_);
      const auto target = device.allocate(Step::kReloadAllocate, bytes.bytes(), compute);
      device.wait(Step::kReloadAfterReady, owner_.back_, device.record(Step::kReady, compute));
      device.wait(Step::kReloadAfterOffload, owner_.back_, ends_.front());
      device.record_use(Step::kDiscard, target, owner_.back_);
      device.reload(Step::kReload, host_, target, owner_.back_);
      ends_.push_back(end_of_copy(Step::kReloaded, owner_.back_));
      device.wait(Step::kConsume, compute, ends_.back());
      return device.restore(target, layout_, bytes.begin, version_);
    }

   private:
    typename D::Event end_of_copy(Step step, const typename D::Stream& stream) {
      has_end_ = owner_.wrong_ == Wrong::kGivesBackEarly;
      typename D::Event end = owner_.device_.record(step, stream);
      has_end_ = true;
      return end;
    }
    // Where the record after a copy failed, nobody can say when it has ended.
    void give_back() {
      if (!has_end_) return owner_.unsafe_.push_back(std::move(host_));
      owner_.device_.release_host(Step::kHostReturn, std::move(host_), ends_);
    }

    Sends& owner_;
    typename D::HostBuffer host_;
    typename D::Layout layout_;
    typename D::Version version_;
    std::uint64_t saved_at_;
    std::vector<typename D::Event> ends_;  // of the copies out of the host bytes and into them
    bool has_end_ = true;                  // the last copy
  };

  D device_;
  const Wrong wrong_;
  const typename D::Stream copies_;
  const typename D::Stream back_;
  int forwards_ = 0;
  int exempt_ = 0;
  std::vector<typename D::HostBuffer> unsafe_;
};

inline HuntedScheduler sends(Wrong wrong = Wrong::kNothing) {
  return hunted<Sends>("sends", wrong);
}

}  // namespace ferry::verify::test
