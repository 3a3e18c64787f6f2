#include "real/disk/extents.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace ferry::real {

std::int64_t Extents::allocate(std::int64_t bytes) {
  if (bytes <= 0) throw std::invalid_argument("an extent of " + std::to_string(bytes) + " bytes");
  const auto fit = std::find_if(free_.begin(), free_.end(),
                                [&](const auto& extent) { return extent.second >= bytes; });
  const std::int64_t offset = fit == free_.end() ? end_ : fit->first;
  taken_.emplace(offset, bytes);  // the only step that can throw
  taken_bytes_ += bytes;
  if (fit == free_.end()) {
    end_ += bytes;
    return offset;
  }
  auto rest = free_.extract(fit);
  if (rest.mapped() > bytes) {
    rest.key() += bytes;
    rest.mapped() -= bytes;
    free_.insert(std::move(rest));
  }
  return offset;
}

void Extents::release(std::int64_t offset, std::int64_t bytes) {
  if (!holds(offset, bytes)) {
    throw std::logic_error("no extent of " + std::to_string(bytes) + " bytes at offset " +
                           std::to_string(offset) + " is taken: freed twice?");
  }
  auto node = taken_.extract(offset);
  taken_bytes_ -= bytes;

  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      node.key() = before->first;
      node.mapped() += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == offset + bytes) {
    node.mapped() += next->second;
    free_.erase(next);
  }
  if (node.key() + node.mapped() == end_) {
    end_ = node.key();
  } else {
    free_.insert(std::move(node));
  }
}

bool Extents::holds(std::int64_t offset, std::int64_t bytes) const {
  const auto found = taken_.find(offset);
  return found != taken_.end() && found->second == bytes;
}

}  // namespace ferry::real
