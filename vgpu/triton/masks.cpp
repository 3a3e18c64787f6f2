// Masks, and values of programs that took different ways (operations.h).
#include <cstdint>
#include <cstring>

#include "vgpu/triton/operations.h"
#include "vgpu/triton/walk.h"

namespace ferry::vgpu::triton {
namespace {

template <class T>
Value merged_as(Pool& pool, const Value& where, const Value& a, const Value& b) {
  return map<T, std::uint8_t, T, T>(
      pool, a.elem(), [](std::uint8_t is_a, T x, T y) { return is_a != 0 ? x : y; }, where, a, b);
}

}  // namespace

Value both(Pool& pool, const Value& a, const Value& b) {
  if (!a.exists()) return b;
  if (!b.exists()) return a;
  return map<std::uint8_t, std::uint8_t, std::uint8_t>(
      pool, Elem::kI1, [](std::uint8_t x, std::uint8_t y) -> std::uint8_t { return x & y; }, a, b);
}

Value negated(Pool& pool, const Value& mask) {
  return map<std::uint8_t, std::uint8_t>(
      pool, Elem::kI1, [](std::uint8_t x) -> std::uint8_t { return x ^ 1; }, mask);
}

bool any(const Value& mask) {
  if (!mask.exists()) return true;
  return std::memchr(mask.as<char>(), 1, static_cast<std::size_t>(mask.elements())) != nullptr;
}

bool all(const Value& mask) {
  if (!mask.exists()) return true;
  return std::memchr(mask.as<char>(), 0, static_cast<std::size_t>(mask.elements())) == nullptr;
}

Value merged(Pool& pool, const Value& where, const Value& a, const Value& b) {
  if (!a.exists() || !b.exists()) return {};
  switch (stored_bytes(a.elem())) {
    case 1:
      return merged_as<std::uint8_t>(pool, where, a, b);
    case 2:
      return merged_as<std::uint16_t>(pool, where, a, b);
    case 4:
      return merged_as<std::uint32_t>(pool, where, a, b);
    default:
      return merged_as<std::uint64_t>(pool, where, a, b);
  }
}

Value spread(Pool& pool, const Value& value, const Dims& dims) {
  if (dims == value.dims()) return value;
  Value yes(pool, Elem::kI1, dims);
  std::memset(yes.as<char>(), 1, static_cast<std::size_t>(yes.elements()));
  return merged(pool, yes, value, value);
}

Value whole(Pool& pool, const Value& value, const std::vector<std::int64_t>& shape) {
  Dims dims = value.dims();
  dims.rank = 1 + static_cast<int>(shape.size());
  for (int i = 1; i < dims.rank; ++i) dims.set(i, shape[static_cast<std::size_t>(i - 1)]);
  return spread(pool, value, dims);
}

}  // namespace ferry::vgpu::triton
