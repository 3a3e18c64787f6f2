#include "vgpu/runtime/virtual_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace ferry::vgpu {
namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

void* VirtualMemory::reserve(std::size_t bytes) {
  const std::size_t size = bytes + kGranularity;
  void* const begin = mmap(nullptr, size, PROT_NONE, kPrivate, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const std::uintptr_t aligned = (number(begin) + kGranularity - 1) / kGranularity * kGranularity;
  reservations_[aligned] = {bytes, begin, size};
  return static_cast<char*>(begin) + (aligned - number(begin));
}

bool VirtualMemory::give_back(void* address, std::size_t bytes, bool keeps_addresses) {
  const auto found = reservations_.find(number(address));
  if (found == reservations_.end() || found->second.bytes != bytes) return false;
  if (!is_free(number(address), bytes)) return false;
  if (!keeps_addresses) munmap(found->second.begin, found->second.size);
  reservations_.erase(found);
  return true;
}

std::uint64_t VirtualMemory::create(std::size_t bytes, int device) {
  pieces_[++made_] = {.bytes = bytes, .device = device};
  return made_;
}

bool VirtualMemory::release(std::uint64_t piece) {
  const auto found = pieces_.find(piece);
  if (found == pieces_.end() || found->second.released) return false;
  found->second.released = true;
  if (!found->second.mapped) pieces_.erase(found);
  return true;
}

int VirtualMemory::map(void* address, std::size_t bytes, std::uint64_t piece) {
  const auto found = pieces_.find(piece);
  if (found == pieces_.end() || found->second.released || found->second.mapped) return -1;
  if (found->second.bytes != bytes || !is_reserved(number(address), bytes)) return -1;
  if (!is_free(number(address), bytes)) return -1;
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return -1;
  }
  found->second.mapped = true;
  mapped_[number(address)] = {bytes, piece};
  return found->second.device;
}

int VirtualMemory::unmap(void* address, std::size_t bytes) {
  if (!is_mapped(address, bytes)) return -1;
  int device = -1;
  auto each = mapped_.find(number(address));
  while (each != mapped_.end() && each->first < number(address) + bytes) {
    const auto piece = pieces_.find(each->second.piece);
    device = piece->second.device;
    piece->second.mapped = false;
    if (piece->second.released) pieces_.erase(piece);
    each = mapped_.erase(each);
  }
  mmap(address, bytes, PROT_NONE, kPrivate | MAP_FIXED, -1, 0);
  return device;
}

bool VirtualMemory::is_mapped(void* address, std::size_t bytes) const {
  std::uintptr_t next = number(address);
  for (auto each = mapped_.find(next); each != mapped_.end() && each->first == next; ++each) {
    next += each->second.bytes;
    if (next >= number(address) + bytes) return next == number(address) + bytes;
  }
  return false;
}

std::int64_t VirtualMemory::bytes(int device) const {
  std::int64_t bytes = 0;
  for (const auto& [handle, piece] : pieces_) {
    if (piece.device == device) bytes += static_cast<std::int64_t>(piece.bytes);
  }
  return bytes;
}

bool VirtualMemory::is_reserved(std::uintptr_t address, std::size_t bytes) const {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return false;
  const auto& [begin, reservation] = *std::prev(after);
  return address + bytes <= begin + reservation.bytes;
}

bool VirtualMemory::is_free(std::uintptr_t address, std::size_t bytes) const {
  const auto after = mapped_.lower_bound(address);
  if (after != mapped_.end() && after->first < address + bytes) return false;
  if (after == mapped_.begin()) return true;
  const auto& [begin, mapped] = *std::prev(after);
  return begin + mapped.bytes <= address;
}

}  // namespace ferry::vgpu
