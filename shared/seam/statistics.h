// The counts of an offloader, and their text for users.
#pragma once

#include <cstdint>
#include <string>

namespace ferry {

// Counts since the offloader was made, or since an earlier snapshot (`since`).
struct OffloadStatistics {
  std::int64_t packs = 0;
  std::int64_t kept = 0;    // packs that left the tensor on its device
  std::int64_t full = 0;    // packs that were kept because the host had no room
  std::int64_t shared = 0;  // packs that an existing copy serves
  std::int64_t offloaded_count = 0;
  std::int64_t offloaded_bytes = 0;
  std::int64_t reloaded_count = 0;
  std::int64_t reloaded_bytes = 0;
  std::int64_t prefetched_count = 0;
  std::int64_t stash_hits = 0;   // unpacks that found the source still on the device
  std::int64_t target_hits = 0;  // unpacks that found the storage already reloaded
  std::int64_t vain_count = 0;   // unused copies: never reloaded, or reloaded and not used
  std::int64_t vain_bytes = 0;
  std::int64_t compute_waits = 0;  // waits enqueued on compute streams
  // Time in which computing threads waited for copies. Waits of CUDA streams are not measured.
  std::int64_t stalled_ns = 0;
  std::int64_t forward_stash_bytes = 0;
  std::int64_t forward_stash_peak_bytes = 0;
  std::int64_t backward_stash_bytes = 0;
  std::int64_t backward_stash_peak_bytes = 0;
  std::int64_t quarantined = 0;  // blocks kept until the core dies, because their release failed

  // Adds each count times `factor`, for the counts that add up over offloaders and time.
  void add(const OffloadStatistics& other, std::int64_t factor) {
    for (const auto count :
         {&OffloadStatistics::packs, &OffloadStatistics::kept, &OffloadStatistics::full,
          &OffloadStatistics::shared, &OffloadStatistics::offloaded_count,
          &OffloadStatistics::offloaded_bytes, &OffloadStatistics::reloaded_count,
          &OffloadStatistics::reloaded_bytes, &OffloadStatistics::prefetched_count,
          &OffloadStatistics::stash_hits, &OffloadStatistics::target_hits,
          &OffloadStatistics::vain_count, &OffloadStatistics::vain_bytes,
          &OffloadStatistics::compute_waits, &OffloadStatistics::stalled_ns,
          &OffloadStatistics::quarantined}) {
      this->*count += factor * other.*count;
    }
  }

  // Returns the counts since `before`. Sizes and peaks of the stashes are the current ones.
  OffloadStatistics since(const OffloadStatistics& before) const {
    OffloadStatistics step = *this;
    step.add(before, -1);
    return step;
  }
  // Adds the counts of another offloader. The sum of the peaks is an upper bound of the true peak.
  OffloadStatistics& operator+=(const OffloadStatistics& other) {
    add(other, 1);
    forward_stash_bytes += other.forward_stash_bytes;
    forward_stash_peak_bytes += other.forward_stash_peak_bytes;
    backward_stash_bytes += other.backward_stash_bytes;
    backward_stash_peak_bytes += other.backward_stash_peak_bytes;
    return *this;
  }
};

// Returns a text like "12.3 MiB". It uses integer arithmetic.
inline std::string in_mebibytes(std::int64_t bytes) {
  const std::int64_t tenths = (bytes * 10 + (std::int64_t{1} << 19)) >> 20;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

// Returns one line for users.
inline std::string to_string(const OffloadStatistics& counts) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  std::string text = number(counts.packs) + " tensors saved: " + number(counts.offloaded_count) +
                     " copied to the host (" + in_mebibytes(counts.offloaded_bytes) + "), " +
                     number(counts.shared) + " shared a copy, " + number(counts.kept) + " kept";
  if (counts.full > 0) text += " (" + number(counts.full) + " for want of room on the host)";
  text += "; " + number(counts.reloaded_count) + " copied back (" +
          in_mebibytes(counts.reloaded_bytes) + ", " + number(counts.prefetched_count) +
          " of them ahead of their use), " + number(counts.stash_hits) +
          " found still on the device; " + number(counts.vain_count) +
          " copies that nobody read (" + in_mebibytes(counts.vain_bytes) + "); " +
          number(counts.compute_waits) + " waits for copies";
  if (counts.stalled_ns > 0) {
    text += ", " + number(counts.stalled_ns / 1'000'000) + "." +
            number(counts.stalled_ns / 100'000 % 10) + " ms stalled";
  }
  return text;
}

}  // namespace ferry
