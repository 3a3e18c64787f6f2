// Counts the bytes of storages that are held, and their peak. stash.cpp uses it for the figures of
// Resident (sim/run/training/scheduler.h). A storage counts once, however often it is held. Call
// remove() only for a storage that was added.
#pragma once

#include <cstdint>
#include <map>

#include "sim/gpu/tensor.h"

namespace ferry::field {

class Held {
 public:
  void add(const sim::Storage& storage) {
    if (++holds_[storage->identity] > 1) return;
    bytes_ += storage->bytes;
    if (bytes_ > peak_bytes_) peak_bytes_ = bytes_;
  }
  void remove(const sim::Storage& storage) {
    const auto held = holds_.find(storage->identity);
    if (--held->second > 0) return;
    bytes_ -= storage->bytes;
    holds_.erase(held);
  }
  // Restarts the peak at the bytes that are held now.
  void reset_peak() { peak_bytes_ = bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::map<std::uint64_t, std::int64_t> holds_;  // by identity
  std::int64_t bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace ferry::field
