#include "sim/gpu/device_pool_sizes.h"

#include <bit>

namespace ferry::sim {
namespace {

// Rounds up a size between two powers of two: their distance has `divisions` equal parts.
std::int64_t round_to_division(std::int64_t bytes, std::int64_t divisions) {
  const auto size = static_cast<std::uint64_t>(bytes);
  if (std::has_single_bit(size)) return bytes;
  const auto floor = static_cast<std::int64_t>(std::bit_floor(size));
  const std::int64_t part = floor / divisions;  // both are powers of two
  return part == 0 ? 2 * floor : round_up(bytes, part);
}

}  // namespace

std::int64_t rounded_bytes(std::int64_t bytes, const AllocConf& conf) {
  if (bytes < kMinBlock) return kMinBlock;
  const std::int64_t divisions = conf.divisions_for(bytes);
  if (divisions > 1 && bytes > kMinBlock * divisions) return round_to_division(bytes, divisions);
  return round_up(bytes, kMinBlock);
}

}  // namespace ferry::sim
