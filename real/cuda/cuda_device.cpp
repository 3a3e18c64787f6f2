#include "real/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real/cuda/block_owners.h"
#include "real/cuda/events.h"
#include "real/cuda/host_pool.h"
#include "real/cuda/span_recorder.h"
#include "real/cuda/step_range.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

cudaStream_t raw(const c10::Stream& stream) { return c10::cuda::CUDAStream(stream).stream(); }

c10::DeviceIndex checked_index(c10::DeviceIndex wanted) {
  const c10::DeviceIndex count = c10::cuda::device_count_ensure_non_zero();
  const c10::DeviceIndex index = wanted == -1 ? c10::cuda::current_device() : wanted;
  TORCH_CHECK(index >= 0 && index < count, "no CUDA device ", int{index}, ": there are ",
              int{count});
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return index;
}

CudaDeviceOptions checked(CudaDeviceOptions options) {
  if (options.pinned_bytes_max < 0) {
    throw torch_error(ValueError("pinned_bytes_max should be at least 0 but is " +
                                 std::to_string(options.pinned_bytes_max)));
  }
  options.index = checked_index(options.index);
  return options;
}

HostUsage machine_usage() {
  HostUsage usage;
  std::FILE* const file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return usage;
  char line[128];
  long long kib = 0;
  long long total = 0;
  long long available = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemTotal: %lld", &kib) == 1) total = kib;
    if (std::sscanf(line, "MemAvailable: %lld", &kib) == 1) available = kib;
  }
  std::fclose(file);
  return {(total - available) * 1024, total * 1024};
}

void check_bounds(const char* what, std::int64_t begin, std::int64_t bytes, std::int64_t whole) {
  if (begin >= 0 && bytes >= 0 && begin <= whole - bytes) return;
  throw std::out_of_range(std::string(what) + ": " + std::to_string(bytes) + " bytes from " +
                          std::to_string(begin) + " on, of a storage of " + std::to_string(whole));
}

}  // namespace

class CudaState {
 public:
  explicit CudaState(const CudaDeviceOptions& given)
      : options(checked(given)),
        events(std::make_shared<CudaEvents>(options.index, /*timed=*/false)),
        pinned({HostMemory::kPinned, options.index, options.pinned_bytes_max,
                options.pinned_cache_bytes_max}),
        pageable(
            {HostMemory::kPageable, options.index, std::numeric_limits<std::int64_t>::max(), 0}) {
    follow_block_owners();
    for (std::optional<c10::Stream>& lane : lanes_) {
      lane = c10::cuda::getStreamFromPool(/*isHighPriority=*/true, options.index).unwrap();
    }
    // Other threads may have taken the other 31 streams in between.
    while (*lanes_[0] == *lanes_[1]) {
      lanes_[1] = c10::cuda::getStreamFromPool(true, options.index).unwrap();
    }
    for (const std::optional<c10::Stream>& lane : lanes_) meet(*lane);
    meet(c10::cuda::getDefaultCUDAStream(options.index).unwrap());
  }

  c10::Stream lane(Lane lane) const { return *lanes_[static_cast<std::size_t>(lane)]; }
  HostPool& pool(HostMemory kind) { return kind == HostMemory::kPinned ? pinned : pageable; }

  // Remembers a stream by its raw handle, because the allocator knows only that.
  const c10::Stream& meet(const c10::Stream& stream) {
    const std::lock_guard lock(mutex_);
    if (std::find(met_.begin(), met_.end(), stream) == met_.end()) met_.push_back(stream);
    return stream;
  }
  std::optional<c10::Stream> known(void* raw_stream) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(met_.begin(), met_.end(), [&](const c10::Stream& stream) {
      return raw(stream) == raw_stream;
    });
    if (found == met_.end()) return std::nullopt;
    return *found;
  }

  std::shared_ptr<SpanRecorder> spans() {
    const std::lock_guard lock(mutex_);
    return spans_;
  }
  void set_spans(std::shared_ptr<SpanRecorder> spans) {
    const std::lock_guard lock(mutex_);
    spans_.swap(spans);
  }

  void copy(Step step, Lane direction, void* to, const void* from, std::int64_t bytes,
            const c10::Stream& stream) {
    const c10::cuda::CUDAGuard guard(options.index);
    const auto recorder = spans();
    CudaSnapshotRef begin = recorder ? recorder->mark(stream) : nullptr;
    const cudaMemcpyKind kind =
        direction == Lane::kDeviceToHost ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, raw(stream)));
    if (!recorder) return;
    const void* const host = direction == Lane::kDeviceToHost ? to : from;
    recorder->copied({step, direction, bytes, 0, 0, host}, std::move(begin), stream);
  }

  // It is unknown which copies still use the block, so this waits for the whole device.
  void abandon(HostMemory kind, HostPool::Block block) noexcept {
    try {
      const c10::cuda::CUDAGuard guard(options.index);
      C10_CUDA_CHECK(cudaDeviceSynchronize());
      pool(kind).free(block, {});
    } catch (...) {
      pool(kind).lose(block);
    }
  }

  const CudaDeviceOptions options;
  const std::shared_ptr<CudaEvents> events;
  HostPool pinned;
  HostPool pageable;

 private:
  std::optional<c10::Stream> lanes_[2];
  std::mutex mutex_;
  std::vector<c10::Stream> met_;
  std::shared_ptr<SpanRecorder> spans_;
};

CudaHostBuffer::CudaHostBuffer(CudaHostBuffer&& other) noexcept { swap(other); }

CudaHostBuffer& CudaHostBuffer::operator=(CudaHostBuffer&& other) noexcept {
  CudaHostBuffer moved(std::move(other));
  swap(moved);
  return *this;
}

CudaHostBuffer::~CudaHostBuffer() {
  if (state_) state_->abandon(kind_, {data_, block_bytes_});
}

void CudaHostBuffer::swap(CudaHostBuffer& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(block_bytes_, other.block_bytes_);
}

CudaDevice::CudaDevice(const CudaDeviceOptions& options)
    : state_(std::make_shared<CudaState>(options)) {}

c10::DeviceIndex CudaDevice::index() const { return state_->options.index; }

c10::Stream CudaDevice::current_stream() {
  return state_->meet(c10::cuda::getCurrentCUDAStream(index()).unwrap());
}

c10::Stream CudaDevice::lane(Lane lane) { return state_->lane(lane); }

CudaDevice::Event CudaDevice::record(Step step, const Stream& stream) {
  const StepRange range(step);
  return state_->events->record(stream);
}

void CudaDevice::wait(Step step, const Stream& stream, const Event& event) {
  const StepRange range(step);
  if (!event) return;  // it was never recorded
  const c10::cuda::CUDAGuard guard(index());
  C10_CUDA_CHECK(cudaStreamWaitEvent(raw(stream), event->event(), cudaEventWaitDefault));
}

c10::Storage CudaDevice::allocate(Step step, std::int64_t bytes, const Stream& stream) {
  const StepRange range(step);
  state_->meet(stream);
  const c10::cuda::CUDAStreamGuard guard(stream);
  c10::Allocator* const memory = allocator::get();
  const auto size = static_cast<std::size_t>(bytes);
  return Storage(Storage::use_byte_size_t(), size, memory->allocate(size), memory,
                 /*resizable=*/true);
}

void CudaDevice::record_use(Step step, const Storage& storage, const Stream& stream) {
  const StepRange range(step);
  const c10::cuda::CUDAGuard guard(index());
  allocator::recordStream(storage.data_ptr(), c10::cuda::CUDAStream(stream));
}

CudaHostBuffer CudaDevice::allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
  const StepRange range(step);
  const HostPool::Block block = state_->pool(kind).allocate(bytes);
  CudaHostBuffer buffer;
  buffer.state_ = state_;
  buffer.kind_ = kind;
  buffer.data_ = block.data;
  buffer.bytes_ = bytes;
  buffer.block_bytes_ = block.bytes;
  return buffer;
}

void CudaDevice::release_host(Step step, HostBuffer&& host,
                              std::span<const Event> events) noexcept {
  const StepRange range(step);
  if (!host.state_) return;
  const std::shared_ptr<CudaState> state = std::exchange(host.state_, nullptr);
  state->pool(host.kind_).free({host.data_, host.block_bytes_}, events);
  if (const auto recorder = state->spans()) recorder->tell_done();
}

HostUsage CudaDevice::host_usage() {
  return state_->options.host_usage ? state_->options.host_usage() : machine_usage();
}

void CudaDevice::offload(Step step, const Storage& storage, std::int64_t begin,
                         const HostBuffer& host, const Stream& stream) {
  const StepRange range(step);
  check_bounds("offload", begin, host.bytes(), bytes(storage));
  const auto* const from = static_cast<const char*>(storage.data()) + begin;
  state_->copy(step, Lane::kDeviceToHost, host.data(), from, host.bytes(), stream);
}

void CudaDevice::reload(Step step, const HostBuffer& host, const Storage& storage,
                        const Stream& stream) {
  const StepRange range(step);
  check_bounds("reload", 0, host.bytes(), bytes(storage));
  state_->copy(step, Lane::kHostToDevice, storage.mutable_data(), host.data(), host.bytes(),
               stream);
}

std::optional<c10::Stream> CudaDevice::owner(const Storage& storage) {
  if (!storage || storage.data() == nullptr) return std::nullopt;
  const std::optional<void*> pool = block_owner(index(), address(storage));
  return pool ? state_->known(*pool) : std::nullopt;
}

bool CudaDevice::on_device(const Tensor& tensor) {
  if (!plain(tensor) || !tensor.is_cuda() || tensor.get_device() != index()) return false;
  const c10::DataPtr& data = tensor.unsafeGetTensorImpl()->unsafe_storage().data_ptr();
  return data.get_deleter() == allocator::get()->raw_deleter();
}

void CudaDevice::set_observer(SpanObserver observer) {
  state_->set_spans(
      observer ? std::make_shared<SpanRecorder>(index(), current_stream(), std::move(observer))
               : nullptr);
}

void CudaDevice::flush_spans() {
  if (const auto recorder = state_->spans()) recorder->flush();
}

void CudaDevice::trim() {
  state_->pinned.trim();
  state_->pageable.trim();
}

CudaStatistics CudaDevice::statistics() {
  const HostPoolStatistics pinned = state_->pinned.statistics();
  const HostPoolStatistics pageable = state_->pageable.statistics();
  return {state_->events->live(), pinned.in_use_bytes + pageable.in_use_bytes,
          pinned.in_use_bytes + pinned.cached_bytes, pinned.lost_bytes + pageable.lost_bytes};
}

}  // namespace ferry::real
