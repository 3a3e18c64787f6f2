// The three byte bounds of the offloader: the window (storages that forward packed and that are
// still on the device), prefetch, and the hold (storages held for further saves).
//
// A run begins with a forward and lasts until the next one. An automatic bound is a sixteenth of
// the most bytes that the offloader had on the host at once, in this run or the previous one, and
// at most 512 MiB. So an automatic bound is small compared with the memory that offloading saves,
// for a model of any size. The window and the hold each admit one storage larger than the bound;
// prefetch does not. The bounds depend only on what is packed and released, not on times, so equal
// runs make equal decisions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared/seam/invariant.h"
#include "shared/seam/options.h"

namespace ferry {

class Bounds {
 public:
  explicit Bounds(const CoreOptions& options) : options_(options) {}

  std::int64_t window() const { return of(options_.window_bytes); }
  std::int64_t prefetch() const { return of(options_.prefetch_bytes); }
  std::int64_t hold() const { return of(options_.hold_bytes); }

  void sent(std::int64_t bytes) {
    invariant(bytes > 0, "what is sent to the host has bytes", Step::kOffload);
    on_host_ += bytes;
    peak_ = std::max(peak_, on_host_);
  }
  void returned(std::int64_t bytes) {
    invariant(bytes <= on_host_, "no more bytes leave the host than were sent there",
              Step::kHostReturn);
    on_host_ -= bytes;
  }
  void begin_run() {
    peak_before_ = peak_;
    peak_ = on_host_;
  }

 private:
  std::int64_t of(std::int64_t bound) const {
    constexpr std::int64_t kShares = 16;
    constexpr std::int64_t kMost = std::int64_t{512} << 20;
    if (bound != kAutomatic) return bound;
    return std::min(std::max(peak_, peak_before_) / kShares, kMost);
  }

  const CoreOptions& options_;
  std::int64_t on_host_ = 0;  // bytes of the parcels that live now
  std::int64_t peak_ = 0;     // the largest on_host_ of this run
  std::int64_t peak_before_ = 0;
};

}  // namespace ferry
