// A simulated device that a test meddles with: its streams that compute are threads of the host,
// if the test says so; storages get other memory; and something else happens within a call.
//
// Its mutex tells whether it is held.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "sim/gpu/device.h"

namespace ferry::test {

struct Meddling {
  bool host_computes = false;
  std::uint64_t moved = 0;   // bytes by which every address has moved
  std::int64_t missing = 0;  // bytes that every storage has lost
  std::int64_t layouts = 0;  // calls
  std::int64_t uniques = 0;  // calls
  // Called first; what they throw, the call throws.
  std::function<void(Step)> at_host_wait;
  std::function<void()> at_address;
  std::function<void()> at_restore;
  std::function<void(const sim::Storage&)> at_exists;
};

class Meddled final : public sim::SimDevice {
 public:
  struct Mutex {
    void lock() {
      EXPECT_FALSE(held) << "the core would wait for itself";
      held = true;
      ++taken;
    }
    void unlock() { held = false; }
    static inline bool held = false;
    static inline std::int64_t taken = 0;
  };

  Meddled(sim::SimDevice device, std::shared_ptr<Meddling> meddling)
      : SimDevice(device), meddling_(std::move(meddling)) {}

  bool is_host(Stream stream) {
    return meddling_->host_computes && stream != lane(Lane::kDeviceToHost) &&
           stream != lane(Lane::kHostToDevice);
  }
  void wait(Step step, Stream stream, const Event& event) {
    if (is_host(stream)) {
      EXPECT_FALSE(Mutex::held) << "others would wait with it";
      if (meddling_->at_host_wait) meddling_->at_host_wait(step);
    }
    SimDevice::wait(step, stream, event);
  }
  std::uint64_t address(const Storage& storage) {
    if (meddling_->at_address) meddling_->at_address();
    return SimDevice::address(storage) + meddling_->moved;
  }
  std::int64_t bytes(const Storage& storage) {
    return SimDevice::bytes(storage) - meddling_->missing;
  }
  bool exists(const Storage& storage) {
    if (meddling_->at_exists) meddling_->at_exists(storage);
    return SimDevice::exists(storage);
  }
  Layout layout(const Tensor& tensor) {
    ++meddling_->layouts;
    return SimDevice::layout(tensor);
  }
  bool unique(const Version& version) {
    ++meddling_->uniques;
    return SimDevice::unique(version);
  }
  Tensor restore(const Storage& storage, const Layout& layout, std::int64_t begin,
                 const Version& version) {
    if (meddling_->at_restore) meddling_->at_restore();
    return SimDevice::restore(storage, layout, begin, version);
  }

 private:
  std::shared_ptr<Meddling> meddling_;
};

}  // namespace ferry::test
