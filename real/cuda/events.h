// CUDA events as snapshots: a handle stands for one record, and its holders share it.
//
// cudaEventRecord replaces the content of an event, and a wait uses the content at the time of the
// call (CUDA runtime API, "Event Management"). So the event of a snapshot is not recorded again
// while anybody holds the snapshot. Then it returns to its pool, which saves creating an event for
// each record. Waits that were enqueued keep the content that they used.
//
// The events of a pool belong to one device. They have no timing unless the pool asks for it; timed
// events cost more and are only for spans. Any thread may call. Errors are exceptions with CUDA's
// text. If the runtime is gone, at the end of the process, an event is leaked. Stream capture is
// not supported: a record in a captured graph is not a snapshot.
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

// A point in the work of a stream. The last holder returns the event to its pool.
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

  // Returns a snapshot of the work that `stream` has so far.
  CudaSnapshotRef record(const c10::Stream& stream);

  // Returns the number of snapshots that are held.
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
