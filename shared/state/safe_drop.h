// Lets go of the bytes of wards on the device and on the host without a copy that writes or reads
// them later. If the device cannot even be told, the bytes stay.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shared/seam/device.h"

namespace ferry {

template <Device D>
class SafeDrop {
 public:
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;

  explicit SafeDrop(D& device) : device_(device) {}  // the device must outlive it
  SafeDrop(const SafeDrop&) = delete;
  SafeDrop& operator=(const SafeDrop&) = delete;
  ~SafeDrop() {
    // Another try, for the last time.
    for (const Storage& storage : std::exchange(storages_, {})) {
      protect(storage, device_.lane(Lane::kDeviceToHost));
      protect(storage, device_.lane(Lane::kHostToDevice));
    }
  }

  // Call this before dropping a storage that `stream` may still use: its pool then waits.
  void protect(const Storage& storage, const Stream& stream) noexcept {
    try {
      device_.record_use(Step::kAbandon, storage, stream);
    } catch (...) {
      storages_.push_back(storage);
    }
  }

  // Returns host bytes after these events and, if `lanes`, after all copies so far.
  void return_host(typename D::HostBuffer&& host, std::vector<typename D::Event> events,
                   bool lanes) noexcept {
    try {
      for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
        if (lanes) events.push_back(device_.record(Step::kAbandon, device_.lane(lane)));
      }
    } catch (...) {
      hosts_.push_back(std::move(host));
      return;
    }
    device_.release_host(Step::kHostReturn, std::move(host), events);
  }

  // Returns how many could not be let go.
  std::int64_t count() const { return static_cast<std::int64_t>(storages_.size() + hosts_.size()); }

 private:
  D& device_;
  std::vector<Storage> storages_;
  std::vector<typename D::HostBuffer> hosts_;
};

}  // namespace ferry
