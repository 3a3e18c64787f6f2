#include "sim/gpu/possible_sizes.h"

#include <algorithm>

#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {

void PossibleSizes::see_room(std::int64_t bytes) {
  most_ = std::min(most_, bytes);
  forbid(bytes - kSmallSize, bytes - kMinBlock);
}

void PossibleSizes::see_request(std::int64_t room, std::int64_t rounded,
                                std::optional<std::int64_t> given_bytes, bool before) {
  // The space behind the block is the room without the block: at least `rounded` bytes, and less
  // than the other block.
  const std::int64_t from =
      given_bytes ? room - *given_bytes + (before ? 0 : kMinBlock) : std::int64_t{0};
  forbid(from, room - rounded);
}

void PossibleSizes::forbid(std::int64_t from, std::int64_t to) {
  if (from <= to && to >= least_ && from <= most_) forbidden_.emplace_back(from, to);
}

const std::pair<std::int64_t, std::int64_t>* PossibleSizes::forbidding(std::int64_t bytes) const {
  const auto found = std::find_if(forbidden_.begin(), forbidden_.end(), [bytes](const auto& range) {
    return range.first <= bytes && bytes <= range.second;
  });
  return found == forbidden_.end() ? nullptr : &*found;
}

std::optional<std::int64_t> PossibleSizes::smallest() const {
  std::int64_t bytes = least_;
  while (const auto* range = forbidding(bytes)) bytes = range->second + kMinBlock;
  return bytes <= most_ ? std::optional(bytes) : std::nullopt;
}

std::optional<std::int64_t> PossibleSizes::largest() const {
  std::int64_t bytes = most_;
  while (const auto* range = forbidding(bytes)) bytes = range->first - kMinBlock;
  return bytes >= least_ ? std::optional(bytes) : std::nullopt;
}

}  // namespace ferry::sim
