// A call of the offloader under its lock.
//
// The call collects in its bin what it releases, waits for and logs. When the section ends, the
// calling thread does the waits, drops the storages and logs the decisions, without the lock.
#pragma once

#include <chrono>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "shared/offload/context.h"
#include "shared/offload/outbound.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <Device D>
class Section {
 public:
  Section(typename D::Mutex& mutex, Context<D>& context, Outbound<D>& outbound)
      : context_(context), outbound_(outbound), lock_(mutex) {}
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    catch_up();
    const std::vector<Decision> decisions = std::exchange(context_.decisions, {});
    lock_.unlock();
    for (const Decision& decision : decisions) context_.options.log(decision);
  }
  Bin<D> bin;

  // Does the pending waits on the calling thread, without the lock. Returns the first error, except
  // that of a copy that nobody needs. A source whose wait failed stays in the window.
  std::exception_ptr catch_up() noexcept {
    if (bin.waits.empty()) return nullptr;
    std::exception_ptr error;
    std::vector<HostWait<D>> waits = std::exchange(bin.waits, {});
    lock_.unlock();
    const auto began = std::chrono::steady_clock::now();
    for (HostWait<D>& wait : waits) {
      try {
        context_.device.wait(wait.step, wait.stream, wait.event);
      } catch (...) {
        wait.failed = true;
        if (!error && wait.step != Step::kDiscard) error = std::current_exception();
      }
    }
    const std::chrono::nanoseconds stalled = std::chrono::steady_clock::now() - began;
    lock_.lock();
    context_.statistics.stalled_ns += stalled.count();
    for (HostWait<D>& wait : waits) waited(std::move(wait));
    return error;
  }

  // Runs `call` without the lock. Other threads may then change anything that was decided before.
  template <class Call>
  auto unlocked(Call call) {
    struct Relock {
      std::unique_lock<typename D::Mutex>& lock;
      ~Relock() { lock.lock(); }
    } const relock{lock_};
    lock_.unlock();
    return call();
  }

 private:
  void waited(HostWait<D>&& wait) noexcept {
    invariant((wait.step == Step::kEvict) == (wait.evicted != nullptr),
              "a wait for an eviction has its parcel and no other wait has one", wait.step);
    if (wait.evicted) {
      outbound_.waited(std::move(wait), bin);
    } else if (context_.device.exists(wait.storage)) {
      if (wait.failed) context_.protect(wait.storage, wait.copies);
      bin.drop(std::move(wait.storage));
    }
  }

  Context<D>& context_;
  Outbound<D>& outbound_;
  std::unique_lock<typename D::Mutex> lock_;
};

}  // namespace ferry
