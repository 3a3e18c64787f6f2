#include "vgpu/triton/memory.h"

#include <algorithm>
#include <utility>

namespace ferry::vgpu::triton {

void Bytes::add(std::uint64_t address, std::uint64_t bytes) {
  if (!ranges_.empty() && ranges_.back().end() == address) {
    ranges_.back().bytes += bytes;
    return;
  }
  if (ranges_.size() >= settles_at_) {
    settle();
    settles_at_ = std::max(settles_at_, 2 * ranges_.size());
  }
  ranges_.push_back({address, bytes});
}

void Bytes::settle() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.address < b.address; });
  std::size_t kept = 0;
  for (const Range range : ranges_) {
    if (kept > 0 && range.address <= ranges_[kept - 1].end()) {
      Range& last = ranges_[kept - 1];
      last.bytes = std::max(last.end(), range.end()) - last.address;
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
}

std::vector<Range> Bytes::ranges() {
  settle();
  return ranges_;
}

bool Memory::contains(std::uint64_t address, std::uint64_t bytes) {
  if (address >= latest_.address && address + bytes <= latest_.end()) return true;
  const Range* const found = before(address);
  if (found == nullptr || address + bytes > found->end() || address + bytes < address) return false;
  latest_ = *found;
  return true;
}

const Range* Memory::before(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t at, const Range& range) { return at < range.address; });
  return after == ranges_.begin() ? nullptr : &*std::prev(after);
}

}  // namespace ferry::vgpu::triton
