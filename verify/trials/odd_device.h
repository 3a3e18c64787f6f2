// The simulated device with conditions that random programs never have: a full host, streams that
// are threads of the host, failing waits, and another thread that drops a tensor in the middle of a
// call. try_saves.h and try_exempt.h run an offloader on it.
//
// There is no second thread: the device drops the tensor itself, when it is asked if the tensor's
// storage exists.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/host_full.h"
#include "sim/gpu/device.h"
#include "sim/gpu/mutex.h"

namespace ferry::verify {

class NoRoom final : public std::runtime_error, public HostFull {
 public:
  NoRoom() : std::runtime_error("the host has no room") {}
};
class CopyFailed final : public std::runtime_error {
 public:
  CopyFailed() : std::runtime_error("a copy has failed") {}
};

// The unusual conditions of a device, and what happened on it.
struct Odds {
  bool host_computes = false;
  bool host_is_full = false;
  int fails_in = -1;  // waits of the host until one fails; below 0: no wait fails
  std::function<void()> at_refusal;
  sim::Tensor let_go = nullptr;  // dropped when its storage is found to exist, as by another thread

  bool refused = false;            // the host had no room
  Step failed = Step::kUser;       // the failed wait
  bool waited_under_lock = false;  // the host waited while a lock was held
  bool told_under_lock = false;    // a decision was logged while a lock was held
  std::int64_t uniques = 0;        // calls of unique()
  std::shared_ptr<const char> weak = std::make_shared<const char>();  // counts weak handles
  std::vector<std::weak_ptr<sim::EventImpl>> waited = {};             // by the host

  std::int64_t weak_handles() const { return weak.use_count() - 1; }
};

class OddDevice final : public sim::SimDevice {
 public:
  struct WeakStorage {
    std::weak_ptr<sim::StorageImpl> storage;
    std::shared_ptr<const char> counted;
  };

  // The odds must outlive it.
  OddDevice(sim::SimDevice device, Odds& odds) : SimDevice(device), odds_(&odds) {}

  bool is_host(Stream stream) {
    return odds_->host_computes && stream != lane(Lane::kDeviceToHost) &&
           stream != lane(Lane::kHostToDevice);
  }
  void wait(Step step, Stream stream, const Event& event) {
    if (is_host(stream) && host_has_waited(step, event)) return;
    SimDevice::wait(step, stream, event);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    if (odds_->host_is_full) {
      odds_->refused = true;
      odds_->at_refusal();
      throw NoRoom();
    }
    return SimDevice::allocate_host(step, bytes, kind);
  }
  WeakStorage weak(const Storage& storage) { return {storage, odds_->weak}; }
  Storage lock(const WeakStorage& storage) { return storage.storage.lock(); }
  bool exists(const Storage& storage) {
    if (storage && odds_->let_go && odds_->let_go->storage == storage) odds_->let_go.reset();
    return SimDevice::exists(storage);
  }
  using SimDevice::identity;
  bool unique(const Version& version) {
    ++odds_->uniques;
    return SimDevice::unique(version);
  }

 private:
  // Returns true if the thread has waited for the event before; then it need not wait again.
  bool host_has_waited(Step step, const Event& event) {
    odds_->waited_under_lock |= sim::locks().held > 0;
    if (odds_->fails_in >= 0 && odds_->fails_in-- == 0) {
      odds_->failed = step;
      throw CopyFailed();
    }
    for (const auto& known : odds_->waited) {
      if (known.lock() == event) return true;
    }
    odds_->waited.push_back(event);
    return false;
  }

  Odds* odds_;
};

static_assert(Device<OddDevice>);

}  // namespace ferry::verify
