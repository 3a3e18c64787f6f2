#include "real/cuda/events.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace ferry::real {
namespace {

// C10_CUDA_CHECK reads LibTorch's list of launches even after success. The last holder of an event
// may be a thread of the autograd engine, which may drop a backward after main has its results.
// Then main may have returned, and the list may be destroyed.
void check(cudaError_t status) {
  if (status != cudaSuccess) C10_CUDA_CHECK(status);
}

}  // namespace

CudaSnapshot::~CudaSnapshot() { pool_->put(event_); }

bool CudaSnapshot::done() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // no later call may take it for an error
    return false;
  }
  check(status);
  return true;
}

void CudaSnapshot::synchronize() const { check(cudaEventSynchronize(event_)); }

CudaEvents::~CudaEvents() {
  for (const cudaEvent_t event : idle_) C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event));
}

CudaSnapshotRef CudaEvents::record(const c10::Stream& stream) {
  const c10::cuda::CUDAGuard guard(device_);
  const auto snapshot = std::make_shared<CudaSnapshot>(shared_from_this(), take());
  C10_CUDA_CHECK(cudaEventRecord(snapshot->event(), c10::cuda::CUDAStream(stream).stream()));
  return snapshot;
}

std::int64_t CudaEvents::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

cudaEvent_t CudaEvents::take() {
  const std::lock_guard lock(mutex_);
  cudaEvent_t event = nullptr;
  if (idle_.empty()) {
    const auto events = static_cast<std::size_t>(live_) + 1;
    if (idle_.capacity() < events) idle_.reserve(2 * events);  // put() then cannot fail
    C10_CUDA_CHECK(cudaEventCreateWithFlags(
        &event, timed_ ? cudaEventDefault : static_cast<unsigned>(cudaEventDisableTiming)));
  } else {
    event = idle_.back();
    idle_.pop_back();
  }
  ++live_;
  return event;
}

void CudaEvents::put(cudaEvent_t event) noexcept {
  const std::lock_guard lock(mutex_);
  --live_;
  idle_.push_back(event);
}

}  // namespace ferry::real
