// The counts of an offloader, and how they read as text.
#pragma once

#include <cstdint>
#include <string>

namespace ferry {

// Counts since the offloader was made, or between two looks at it (`since`).
struct OffloadStatistics {
  std::int64_t packs = 0;
  std::int64_t kept = 0;    // packs that left the tensor where it is
  std::int64_t full = 0;    // those of them that the host side had no room for
  std::int64_t shared = 0;  // packs served by a copy already on its way
  std::int64_t offloaded_count = 0;
  std::int64_t offloaded_bytes = 0;
  std::int64_t reloaded_count = 0;
  std::int64_t reloaded_bytes = 0;
  std::int64_t prefetched_count = 0;
  std::int64_t stash_hits = 0;   // unpacks that found the source still on the device
  std::int64_t target_hits = 0;  // unpacks that found the storage reloaded already
  std::int64_t vain_count = 0;   // copies to the host never reloaded, and reloads never consumed
  std::int64_t vain_bytes = 0;
  std::int64_t compute_waits = 0;  // waits enqueued on compute streams
  // Time that computing threads waited for copies. Waits of streams (CUDA) are not measured.
  std::int64_t stalled_ns = 0;
  std::int64_t forward_stash_bytes = 0;
  std::int64_t forward_stash_peak_bytes = 0;
  std::int64_t backward_stash_bytes = 0;
  std::int64_t backward_stash_peak_bytes = 0;
  std::int64_t quarantined = 0;  // blocks kept while the core lives: their release itself failed

  // Calls `add` with each count and its factor: the counts that add up over offloaders and time.
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

  // The counts since that look; the stash's size and the peaks are the present ones.
  OffloadStatistics since(const OffloadStatistics& before) const {
    OffloadStatistics step = *this;
    step.add(before, -1);
    return step;
  }
  // The sum over several offloaders (the sum of peaks bounds the true peak).
  OffloadStatistics& operator+=(const OffloadStatistics& other) {
    add(other, 1);
    forward_stash_bytes += other.forward_stash_bytes;
    forward_stash_peak_bytes += other.forward_stash_peak_bytes;
    backward_stash_bytes += other.backward_stash_bytes;
    backward_stash_peak_bytes += other.backward_stash_peak_bytes;
    return *this;
  }
};

// "12.3 MiB", by integer arithmetic.
inline std::string in_mebibytes(std::int64_t bytes) {
  const std::int64_t tenths = (bytes * 10 + (std::int64_t{1} << 19)) >> 20;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

// One line for people to read.
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
