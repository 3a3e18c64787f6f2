#include "tests/vgpu/allocator/torch_pool.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "vgpu/runtime/control.h"

#if __has_include(<c10/cuda/PeerToPeerAccess.h>)  // since 2.11
#include <c10/cuda/PeerToPeerAccess.h>
#endif

// LibTorch exports it, in no header of the wheel; ATen, which this does without, calls it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace ferry::vgpu {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using c10::CachingAllocator::AcceleratorAllocatorConfig;

// Settings keep these until they are set again.
const char* const kUsual = kHasLargeSegments
                               ? "expandable_segments:False,large_segment_size_mb:20"
                               : "expandable_segments:False,max_non_split_rounding_mb:20";

std::vector<MemoryEvent>& recorded() {
  static std::vector<MemoryEvent> events;
  return events;
}

std::deque<std::uint64_t>& reserved() {
  static std::deque<std::uint64_t> addresses;
  return addresses;
}

decltype(&cuMemAddressReserve) reserve_addresses = nullptr;

CUresult reserve_and_tell(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                          CUdeviceptr wanted, unsigned long long flags) {
  const CUresult result = reserve_addresses(address, bytes, alignment, wanted, flags);
  if (result == CUDA_SUCCESS) reserved().push_back(*address);
  return result;
}

void record(const allocator::TraceEntry& entry) {
  using Action = allocator::TraceEntry::Action;
  MemoryEvent event;
  switch (entry.action_) {
    case Action::ALLOC:
      event.action = MemoryAction::kAlloc;
      break;
    case Action::FREE_REQUESTED:
      event.action = MemoryAction::kFreeRequested;
      break;
    case Action::FREE_COMPLETED:
      event.action = MemoryAction::kFreeCompleted;
      break;
    case Action::SEGMENT_ALLOC:
      event.action = MemoryAction::kSegmentAlloc;
      break;
    case Action::SEGMENT_FREE:
      event.action = MemoryAction::kSegmentFree;
      break;
    case Action::SEGMENT_MAP:
      event.action = MemoryAction::kSegmentMap;
      break;
    case Action::SEGMENT_UNMAP:
      event.action = MemoryAction::kSegmentUnmap;
      break;
    case Action::OOM:
      event.action = MemoryAction::kOom;
      break;
    default:  // a snapshot; and since 2.15 an annotation
      return;
  }
  event.address = entry.addr_;
  event.bytes = static_cast<std::int64_t>(entry.size_);
  event.stream = reinterpret_cast<std::uint64_t>(entry.stream_);
  recorded().push_back(event);
}

void start() {
  set_devices(1);
  set_device_bytes(TorchPool::kTotalBytes);
  allocator::init(1);
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
  c10::cuda::detail::init_p2p_access_cache(1);  // as ATen does
#endif
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  allocator::attachAllocatorTraceTracker(record);
}

// The default stream is first, and its handle the lowest.
const std::vector<c10::cuda::CUDAStream>& streams() {
  static const std::vector<c10::cuda::CUDAStream> kAll = [] {
    std::vector<c10::cuda::CUDAStream> all = {c10::cuda::getDefaultCUDAStream(0)};
    while (all.size() < TorchPool::kStreams) {
      all.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, 0));
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.stream() < b.stream(); });
    return all;
  }();
  return kAll;
}

}  // namespace

// The program's own wins: LibTorch finds the driver's functions by it. PyTorch's trace does not say
// what was reserved.
extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                                        unsigned version, unsigned long long flags,
                                                        cudaDriverEntryPointQueryResult* result) {
  static const auto kRuntimes = reinterpret_cast<decltype(&cudaGetDriverEntryPointByVersion)>(
      ::dlsym(RTLD_NEXT, "cudaGetDriverEntryPointByVersion"));
  const cudaError_t error = kRuntimes(name, function, version, flags, result);
  if (std::string_view(name) == "cuMemAddressReserve") {
    reserve_addresses = reinterpret_cast<decltype(&cuMemAddressReserve)>(*function);
    *function = reinterpret_cast<void*>(&reserve_and_tell);
  }
  return error;
}

TorchPool::TorchPool(const std::string& conf, double fraction, std::int64_t context_bytes) {
  static const bool kStarted = (start(), true);
  static_cast<void>(kStarted);
  reset();
  set_tempo(Tempo::kLazy, 0);
  set_device_bytes(kTotalBytes, context_bytes);
  c10::CachingAllocator::setAllocatorSettings(kUsual);
  c10::CachingAllocator::setAllocatorSettings(conf);
  allocator::get()->setMemoryFraction(fraction, 0);
  allocator::resetAccumulatedStats(0);
  allocator::resetPeakStats(0);
  recorded().clear();
  reserved().clear();
}

TorchPool::~TorchPool() {
  for (void* block : live_) allocator::raw_delete(block);
  allocator::emptyCache();
  // Addresses that were reserved, and where nothing could be mapped, stay until something was.
  set_device_bytes(kTotalBytes);
  allocator::get()->setMemoryFraction(1, 0);
  for (std::uint32_t stream = 0; stream < kStreams; ++stream) {
    for (const std::int64_t bytes : {1, 2 << 20}) allocator::raw_delete(allocate(bytes, stream));
  }
  allocator::emptyCache();
  if (figures().reserved_bytes != 0) std::abort();
}

void* TorchPool::allocate(std::int64_t bytes, std::uint32_t stream) {
  try {
    void* const block = allocator::raw_alloc_with_stream(static_cast<std::size_t>(bytes),
                                                         streams().at(stream).stream());
    live_.push_back(block);
    return block;
  } catch (const c10::OutOfMemoryError& error) {
    out_of_memory_ = error.what_without_backtrace();
    return nullptr;
  }
}

void TorchPool::free(void* block) {
  std::erase(live_, block);
  allocator::raw_delete(block);
}

void TorchPool::record_use(void* block, std::uint32_t stream) {
  // The allocator takes only what has its own deleter.
  c10::DataPtr data(block, block, allocator::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));
  allocator::recordStream(data, streams().at(stream));
  data.release_context();
}

void TorchPool::finish(std::uint32_t stream) {
  cudaStreamSynchronize(streams().at(stream).stream());
}

void TorchPool::empty_cache() { allocator::emptyCache(); }

TorchFigures TorchPool::figures() const {
  const auto stats = allocator::getDeviceStats(0);
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  TorchFigures figures;
  figures.allocated_bytes = stats.allocated_bytes[kAll].current;
  figures.allocated_peak = stats.allocated_bytes[kAll].peak;
  figures.active_bytes = stats.active_bytes[kAll].current;
  figures.active_peak = stats.active_bytes[kAll].peak;
  figures.requested_bytes = stats.requested_bytes[kAll].current;
  figures.requested_peak = stats.requested_bytes[kAll].peak;
  figures.reserved_bytes = stats.reserved_bytes[kAll].current;
  figures.reserved_peak = stats.reserved_bytes[kAll].peak;
  figures.num_alloc_retries = stats.num_alloc_retries;
  figures.num_ooms = stats.num_ooms;
  figures.num_sync_all_streams = stats.num_sync_all_streams;
  figures.num_device_alloc = stats.num_device_alloc;
  figures.num_device_free = stats.num_device_free;
  return figures;
}

std::vector<MemoryEvent> TorchPool::take_trace() {
  std::vector<MemoryEvent> taken = std::move(recorded());
  recorded().clear();
  for (MemoryEvent& event : taken) {
    const auto& all = streams();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& stream) {
      return reinterpret_cast<std::uint64_t>(stream.stream()) == event.stream;
    });
    event.stream = static_cast<std::uint64_t>(found - all.begin());
  }
  return taken;
}

std::deque<std::uint64_t> TorchPool::take_reservations() { return std::exchange(reserved(), {}); }

TorchConf torch_conf(const std::string& text) {
  c10::CachingAllocator::setAllocatorSettings(kUsual);
  TorchConf result;
  try {
    c10::CachingAllocator::setAllocatorSettings(text);
  } catch (const std::exception& error) {
    result.refused = error.what();
    return result;
  }
  using Config = AcceleratorAllocatorConfig;
  AllocConf& conf = result.conf;
  conf.expandable_segments = Config::use_expandable_segments();
#if TORCH_VERSION_MINOR >= 11
  conf.large_segment_bytes = static_cast<std::int64_t>(Config::large_segment_size());
#endif
  if (Config::max_split_size() != std::numeric_limits<std::size_t>::max()) {
    conf.max_split_bytes = static_cast<std::int64_t>(Config::max_split_size());
  }
  conf.max_non_split_rounding_bytes =
      static_cast<std::int64_t>(Config::max_non_split_rounding_size());
  for (std::size_t i = 0; i < conf.roundup_power2_divisions.size(); ++i) {
    conf.roundup_power2_divisions[i] =
        static_cast<std::int64_t>(Config::roundup_power2_divisions().at(i));
  }
  conf.garbage_collection_threshold = Config::garbage_collection_threshold();
  return result;
}

}  // namespace ferry::vgpu
