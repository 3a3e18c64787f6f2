#include "vgpu/runtime/known_bytes.h"

#include <algorithm>
#include <iterator>

namespace ferry::vgpu {

bool KnownBytes::contains(Range range) const {
  if (range.bytes == 0) return true;
  const auto after = pieces_.upper_bound(range.address);
  return after != pieces_.begin() && range.end() <= std::prev(after)->second;
}

void KnownBytes::add(Range range) {
  if (range.bytes == 0) return;
  std::uint64_t begin = range.address;
  std::uint64_t end = range.end();
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin() && std::prev(piece)->second >= begin) --piece;
  while (piece != pieces_.end() && piece->first <= end) {
    begin = std::min(begin, piece->first);
    end = std::max(end, piece->second);
    piece = pieces_.erase(piece);
  }
  pieces_.emplace(begin, end);
}

void KnownBytes::remove(Range range) {
  if (range.bytes == 0) return;
  auto piece = pieces_.upper_bound(range.address);
  if (piece != pieces_.begin() && std::prev(piece)->second > range.address) --piece;
  while (piece != pieces_.end() && piece->first < range.end()) {
    const auto [begin, end] = *piece;
    piece = pieces_.erase(piece);
    if (begin < range.address) pieces_.emplace(begin, range.address);
    if (end > range.end()) pieces_.emplace(range.end(), end);
  }
}

}  // namespace ferry::vgpu
