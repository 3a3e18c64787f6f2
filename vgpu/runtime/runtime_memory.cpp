// The runtime's memory, which is the host's, and what it tells of its operations.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

constexpr std::uint64_t kHostBase = std::uint64_t{1} << 60;  // as in sim/check/hazard.h

std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

void* Runtime::allocate(std::map<std::uintptr_t, Memory>& from, std::size_t bytes, int device) {
  const bool pinned = &from == &pinned_memory;
  void* const place = pinned ? nullptr : take_addresses(pages(bytes), device);
  if (!pinned && place == nullptr) return nullptr;
  void* const address =
      mmap(place, pages(bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (pinned ? 0 : MAP_FIXED), -1, 0);
  if (address == MAP_FAILED) return nullptr;
  from.emplace(reinterpret_cast<std::uintptr_t>(address), Memory{bytes, device});
  if (pinned) known_bytes.add({reinterpret_cast<std::uint64_t>(address), bytes});
  note_peaks();
  return address;
}

void* Runtime::take_addresses(std::size_t bytes, int device) {
  if (device_memory.empty() && freed_.empty() && !keeps_addresses) {
    for (DeviceAddresses& each : addresses_) each.restart();
  }
  return addresses_[static_cast<std::size_t>(device)].take(
      bytes, segments_go_up ? AddressOrder::kUp : AddressOrder::kDown);
}

void Runtime::release_unused(int device, std::uint64_t kept) {
  if (pool(device).reserved.now <= kept) return;
  finish_device(device);
  for (const std::uintptr_t segment : pool(device).take_free_segments(kept)) {
    free(device_memory, reinterpret_cast<void*>(segment));
  }
}

void Runtime::note_peaks() {
  for (int device = 0; device < devices; ++device) {
    std::int64_t& peak = device_bytes_peaks[static_cast<std::size_t>(device)];
    peak = std::max(peak, device_bytes(device));
  }
  pinned_bytes_peak = std::max(pinned_bytes_peak, pinned_bytes());
}

bool Runtime::map(void* address, std::size_t bytes, std::uint64_t piece) {
  const int device = virtual_memory.map(address, bytes, piece);
  if (device < 0) return false;
  const auto joins = [device](const Memory& memory) {
    return memory.mapped && memory.device == device;
  };
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  auto at = device_memory.emplace(number, Memory{bytes, device, /*mapped=*/true}).first;
  if (at != device_memory.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes == number && joins(before->second)) {
      before->second.bytes += bytes;
      device_memory.erase(at);
      at = before;
    }
  }
  const auto after = std::next(at);
  if (after != device_memory.end() && at->first + at->second.bytes == after->first &&
      joins(after->second)) {
    at->second.bytes += after->second.bytes;
    device_memory.erase(after);
  }
  return true;
}

bool Runtime::unmap(void* address, std::size_t bytes) {
  if (!virtual_memory.is_mapped(address, bytes)) return false;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto at = std::prev(device_memory.upper_bound(number));
  const auto [begin, memory] = *at;
  finish_device(memory.device);
  if (listener != nullptr) listener->forget({number, bytes});
  known_bytes.remove({number, bytes});
  virtual_memory.unmap(address, bytes);
  device_memory.erase(at);
  const std::size_t before = number - begin;
  if (before > 0) device_memory.emplace(begin, Memory{before, memory.device, true});
  if (const std::size_t rest = memory.bytes - before - bytes; rest > 0) {
    device_memory.emplace(number + bytes, Memory{rest, memory.device, true});
  }
  return true;
}

bool Runtime::free(std::map<std::uintptr_t, Memory>& from, void* address) {
  const auto found = from.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == from.end() || found->second.mapped) {
    ++wrong_frees;
    return false;
  }
  if (&from == &pinned_memory && values == KernelValues::kComputed) {
    std::memset(address, 0xdd, found->second.bytes);  // somebody else's now
  } else if (&from != &pinned_memory && listener != nullptr) {
    listener->forget(range(address, found->second.bytes));
  }
  known_bytes.remove({reinterpret_cast<std::uint64_t>(address), found->second.bytes});
  const bool stays = keeps_addresses || &from != &pinned_memory;
  freed_.push_back({address, pages(found->second.bytes), stays});
  from.erase(found);
  if (counts().queued == 0) unmap_freed();
  return true;
}

void Runtime::unmap_freed() {
  for (const auto& [address, bytes, stays] : freed_) {
    if (stays) {
      mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0);
    } else {
      munmap(address, bytes);
    }
  }
  freed_.clear();
}

const Memory* Runtime::find(const std::map<std::uintptr_t, Memory>& in, const void* address,
                            std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  auto after = in.upper_bound(begin);
  if (after == in.begin()) return nullptr;
  const auto& [start, memory] = *std::prev(after);
  return begin + bytes <= start + memory.bytes ? &memory : nullptr;
}

std::int64_t Runtime::device_bytes(int device) const {
  std::int64_t bytes = 0;
  for (const auto& [address, memory] : device_memory) {
    if (memory.device == device && !memory.mapped) bytes += static_cast<std::int64_t>(memory.bytes);
  }
  return bytes + virtual_memory.bytes(device);
}

std::int64_t Runtime::free_device_bytes(int device) const {
  return std::max(device_bytes_max - context_bytes - device_bytes(device), std::int64_t{0});
}

std::int64_t Runtime::pinned_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [address, memory] : pinned_memory) {
    bytes += static_cast<std::int64_t>(memory.bytes);
  }
  return bytes;
}

Counts Runtime::counts() const {
  Counts counts;
  for (int device = 0; device < kDevices; ++device) counts.device_bytes += device_bytes(device);
  counts.pinned_bytes = pinned_bytes();
  counts.events = static_cast<std::int64_t>(events_.size());
  for (const Stream& stream : legacy_) {
    counts.queued += static_cast<std::int64_t>(stream.queue.size());
  }
  for (const auto& stream : streams_) {
    counts.queued += static_cast<std::int64_t>(stream->queue.size());
  }
  counts.wrong_frees = wrong_frees;
  counts.refusals = refusals;
  counts.device_bytes_peaks.assign(device_bytes_peaks.begin(),
                                   device_bytes_peaks.begin() + devices);
  counts.pinned_bytes_peak = pinned_bytes_peak;
  return counts;
}

bool Runtime::computes(std::span<const Range> reads, std::span<const Range> writes) {
  if (values == KernelValues::kComputed) return true;
  std::uint64_t bytes = 0;
  bool all_known = true;
  for (const Range range : reads) {
    bytes += range.bytes;
    all_known = all_known && known_bytes.contains(range);
  }
  for (const Range range : writes) bytes += range.bytes;
  const bool computed = all_known && bytes <= kFewBytes;
  for (const Range range : writes) computed ? known_bytes.add(range) : known_bytes.remove(range);
  return computed;
}

// --- The log

// The block's free comes before all that is told after it.
void Runtime::tell(const StreamOp& op) {
  end_free();
  hear(op);
}

void Runtime::begin_free(const StreamOp& free, std::string_view library) {
  end_free();
  pending_free.begin(free, library);
}

void Runtime::end_free() {
  pending_free.end([this](const StreamOp& op) { hear(op); });
}

bool Runtime::completes_free(Range block) {
  return pending_free.completes(block, [this](const StreamOp& op) { hear(op); });
}

void Runtime::hear(StreamOp op) {
  if (listener == nullptr) return;
  if (op.step == Step::kUser) op.step = thread().step;
  listener->on(op);
}

Range Runtime::range(const void* address, std::size_t bytes) const {
  const auto number = reinterpret_cast<std::uint64_t>(address);
  const bool device = find(device_memory, address, 1) != nullptr;
  return {device ? number : number + kHostBase, bytes};
}

}  // namespace ferry::vgpu
