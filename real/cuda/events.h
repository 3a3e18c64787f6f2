// CUDA events as snapshots: one handle is one record, shared by whoever holds it.
//
// cudaEventRecord replaces what an event held, while a wait takes what it holds at the time of the
// call (CUDA runtime API, "Event Management"). So a snapshot is an event that is not recorded again
// while anybody holds it; then it goes back to its pool, which saves creating one for each record.
// Waits that were enqueued keep what they took.
//
// Events of a pool belong to one device. They are made without timing unless a pool says so: those
// with it cost more and are for spans alone. Any thread may call; errors are exceptions with CUDA's
// own text. Where the runtime is gone already, at the end of the process, an event is leaked.
// Not modelled: stream capture. A record in a captured graph is no snapshot.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ferry::real {

class CudaEvents;

// A snapshot of a stream's work. The last holder returns the event to its pool.
class CudaSnapshot {
 public:
  CudaSnapshot(std::shared_ptr<CudaEvents> pool, cudaEvent_t event)
      : pool_(std::move(pool)), event_(event) {}
  CudaSnapshot(const CudaSnapshot&) = delete;
  CudaSnapshot& operator=(const CudaSnapshot&) = delete;
  ~CudaSnapshot();

  cudaEvent_t event() const { return event_; }
  // True if the work is done. Does not block.
  bool done() const;
  // Blocks until the work is done.
  void synchronize() const;

 private:
  std::shared_ptr<CudaEvents> pool_;
  cudaEvent_t event_;
};

using CudaSnapshotRef = std::shared_ptr<const CudaSnapshot>;

class CudaEvents : public std::enable_shared_from_this<CudaEvents> {
 public:
  CudaEvents(c10::DeviceIndex device, bool timed) : device_(device), timed_(timed) {}
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  // A snapshot of the work that `stream` was given so far.
  CudaSnapshotRef record(const c10::Stream& stream);

  // The number of snapshots that somebody holds.
  std::int64_t live() const;

 private:
  friend class CudaSnapshot;
  cudaEvent_t take();
  void put(cudaEvent_t event) noexcept;

  const c10::DeviceIndex device_;
  const bool timed_;
  mutable std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
  std::int64_t live_ = 0;
};

}  // namespace ferry::real
