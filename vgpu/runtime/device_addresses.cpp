#include "vgpu/runtime/device_addresses.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace ferry::vgpu {
namespace {

constexpr std::size_t kReserved = std::size_t{1} << 40;
constexpr std::size_t kPiece = SegmentAddresses::kPiece;

}  // namespace

bool DeviceAddresses::reserve(std::size_t bytes) {
  const std::size_t size = std::max(kReserved, (bytes / kPiece + 1) * kPiece) + kPiece;
  void* const begin =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return false;
  begin_ = static_cast<char*>(begin);
  size_ = size;
  return true;
}

void* DeviceAddresses::take(std::size_t bytes, AddressOrder order) {
  for (bool is_new = false;; is_new = true) {
    if (!addresses_ && begin_ != nullptr) {
      const auto begin = reinterpret_cast<std::uintptr_t>(begin_);
      addresses_.emplace((begin + kPiece - 1) / kPiece * kPiece, (begin + size_) / kPiece * kPiece,
                         order);
    }
    const auto address = addresses_ ? addresses_->take(bytes) : std::nullopt;
    if (address) return begin_ + (*address - reinterpret_cast<std::uintptr_t>(begin_));
    if (is_new || !reserve(bytes)) return nullptr;
    addresses_.reset();
  }
}

}  // namespace ferry::vgpu
