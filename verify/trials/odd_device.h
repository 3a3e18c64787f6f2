// The simulated device with what drawn programs never meet: a host that has no room, streams that
// are the host's own threads, waits that fail, and another thread that lets go of a tensor in the
// middle of a call.
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

// What is odd about a device, and what was asked of it.
struct Odds {
  bool host_computes = false;
  bool host_is_full = false;
  int fails_in = -1;  // waits of the host until one fails; below 0: none does
  std::function<void()> at_refusal;
  sim::Tensor let_go = nullptr;  // once its storage is seen to exist, nobody else has it

  bool refused = false;            // it had no room
  Step failed = Step::kUser;       // the wait that failed
  bool waited_under_lock = false;  // others would wait with it
  bool told_under_lock = false;    // of a decision
  std::int64_t uniques = 0;        // questions whether a counter is anybody's
  std::shared_ptr<const char> weak = std::make_shared<const char>();  // shared by weak handles
  std::vector<std::weak_ptr<sim::EventImpl>> waited = {};             // for these the host has

  std::int64_t weak_handles() const { return weak.use_count() - 1; }
};

class OddDevice final : public sim::SimDevice {
 public:
  struct WeakStorage {
    std::weak_ptr<sim::StorageImpl> storage;
    std::shared_ptr<const char> counted;
  };

  // The odds outlive it.
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
  // A thread that waits again for what it has waited for does nothing.
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
