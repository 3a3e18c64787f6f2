// A simulated device that does what the seam allows and the others do not do: a storage that is
// moved from still holds its bytes, a host buffer frees them with itself, and a storage's pool may
// be unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/gpu/device.h"

namespace ferry::test {

struct Oddities {
  bool pools_unknown = false;
  std::optional<Step> fails;  // the records of that step
  std::int64_t returned = 0;  // calls
  std::weak_ptr<int> bytes;   // expired once the latest host buffer is freed
};

class OddDevice final : public sim::SimDevice {
 public:
  class Storage {
   public:
    Storage() = default;
    Storage(sim::Storage storage) : held_(std::move(storage)) {}  // NOLINT(*-explicit-*)
    Storage(const Storage&) = default;
    Storage& operator=(const Storage&) = default;
    ~Storage() = default;
    operator const sim::Storage&() const { return held_; }  // NOLINT(*-explicit-*)

   private:
    sim::Storage held_;
  };
  struct HostBuffer : sim::HostBuffer {
    std::shared_ptr<int> owned;
  };

  OddDevice(sim::SimDevice device, std::shared_ptr<Oddities> odd)
      : SimDevice(device), odd_(std::move(odd)) {}

  Storage storage(const Tensor& tensor) { return SimDevice::storage(tensor); }
  Storage lock(const WeakStorage& storage) { return SimDevice::lock(storage); }
  Storage allocate(Step step, std::int64_t bytes, Stream stream) {
    return SimDevice::allocate(step, bytes, stream);
  }
  std::optional<Stream> owner(const Storage& storage) {
    std::optional<Stream> owner = SimDevice::owner(storage);
    if (odd_->pools_unknown) owner.reset();
    return owner;
  }
  Event record(Step step, Stream stream) {
    if (odd_->fails == step) throw std::runtime_error("no event");
    return SimDevice::record(step, stream);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    HostBuffer host{SimDevice::allocate_host(step, bytes, kind), std::make_shared<int>()};
    odd_->bytes = host.owned;
    return host;
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    ++odd_->returned;
    SimDevice::release_host(step, std::move(host), events);
  }

 private:
  std::shared_ptr<Oddities> odd_;
};

}  // namespace ferry::test
