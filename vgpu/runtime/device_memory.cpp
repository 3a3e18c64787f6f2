#include "vgpu/runtime/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace ferry::vgpu {
namespace {

constexpr std::uint64_t kHostBase = std::uint64_t{1} << 60;  // the same as in sim/check/hazard.h

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void* DeviceMemory::allocate(std::size_t bytes, int device) {
  void* const place = take_addresses(pages(bytes), device);
  if (place == nullptr) return nullptr;
  void* const address = mmap(place, pages(bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  allocations_.emplace(number(address), Allocation{bytes, device});
  note_peaks();
  return address;
}

void* DeviceMemory::take_addresses(std::size_t bytes, int device) {
  if (allocations_.empty() && freed_.is_empty() && !settings_.keeps_addresses) {
    for (DeviceAddresses& each : addresses_) each.restart();
  }
  return addresses_[static_cast<std::size_t>(device)].take(
      bytes, settings_.segments_go_up ? AddressOrder::kUp : AddressOrder::kDown);
}

bool DeviceMemory::free(void* address) {
  const auto found = allocations_.find(number(address));
  if (found == allocations_.end() || found->second.mapped) {
    freed_.count_wrong();
    return false;
  }
  const Range range{number(address), found->second.bytes};
  log_.forget(range);
  values_.remove(range);
  allocations_.erase(found);
  freed_.add(address, pages(range.bytes), true);
  return true;
}

void DeviceMemory::add_mapped(void* address, std::size_t bytes, int device) {
  const auto joins = [device](const Allocation& allocation) {
    return allocation.mapped && allocation.device == device;
  };
  auto at = allocations_.emplace(number(address), Allocation{bytes, device, true}).first;
  if (at != allocations_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes == at->first && joins(before->second)) {
      before->second.bytes += bytes;
      allocations_.erase(at);
      at = before;
    }
  }
  const auto after = std::next(at);
  if (after != allocations_.end() && at->first + at->second.bytes == after->first &&
      joins(after->second)) {
    at->second.bytes += after->second.bytes;
    allocations_.erase(after);
  }
}

void DeviceMemory::remove_mapped(void* address, std::size_t bytes) {
  const auto at = std::prev(allocations_.upper_bound(number(address)));
  const auto [begin, all] = *at;
  allocations_.erase(at);
  const std::size_t before = number(address) - begin;
  if (before > 0) allocations_.emplace(begin, Allocation{before, all.device, true});
  if (const std::size_t rest = all.bytes - before - bytes; rest > 0) {
    allocations_.emplace(number(address) + bytes, Allocation{rest, all.device, true});
  }
}

Range DeviceMemory::range(const void* address, std::size_t bytes) const {
  const bool is_of_device = find(address, 1) != nullptr;
  return {is_of_device ? number(address) : number(address) + kHostBase, bytes};
}

std::int64_t DeviceMemory::bytes(int device) const {
  std::int64_t bytes = virtual_memory_.bytes(device);
  for (const auto& [address, each] : allocations_) {
    if (each.device == device && !each.mapped) bytes += static_cast<std::int64_t>(each.bytes);
  }
  return bytes;
}

std::int64_t DeviceMemory::bytes() const {
  std::int64_t bytes = 0;
  for (int device = 0; device < kDevices; ++device) bytes += this->bytes(device);
  return bytes;
}

std::int64_t DeviceMemory::free_bytes(int device) const {
  const std::int64_t room = settings_.device_bytes_max - settings_.context_bytes;
  return std::max(room - bytes(device), std::int64_t{0});
}

void DeviceMemory::note_peaks() {
  for (int device = 0; device < settings_.devices; ++device) {
    std::int64_t& peak = peaks_[static_cast<std::size_t>(device)];
    peak = std::max(peak, bytes(device));
  }
}

std::vector<std::int64_t> DeviceMemory::peaks() const {
  return {peaks_.begin(), peaks_.begin() + settings_.devices};
}

}  // namespace ferry::vgpu
