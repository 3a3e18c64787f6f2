// Arithmetic of ramps (value.h): sums, products, comparisons and new axes that look at no element.
//
// Numbers of kI32 wrap around, and a ramp does not. So a result of that type is a ramp only if none
// of its elements is beyond 32 bits.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

bool is_single(const Dims& dims, int from) {
  for (int axis = from; axis < dims.rank; ++axis) {
    if (dims[axis] != 1) return false;
  }
  return true;
}

// The value as a ramp, if it is one or has one number for each program.
std::optional<Ramp> as_ramp(const Value& value) {
  if (value.ramp() != nullptr) return *value.ramp();
  if (!is_single(value.dims(), 1)) return std::nullopt;
  Ramp ramp;
  const auto count = static_cast<std::size_t>(value.dims()[0]);
  switch (value.elem()) {
    case Elem::kI32:
      ramp.bases.assign(value.as<std::int32_t>(), value.as<std::int32_t>() + count);
      return ramp;
    case Elem::kI64:
    case Elem::kPointer:
      ramp.bases.assign(value.as<std::int64_t>(), value.as<std::int64_t>() + count);
      return ramp;
    default:
      return std::nullopt;
  }
}

// Returns nothing if an element is beyond the type.
Value checked(Pool& pool, Elem elem, const Dims& dims, Ramp ramp) {
  if (elem == Elem::kI32) {
    std::int64_t below = 0;
    std::int64_t above = 0;
    for (int axis = 1; axis < dims.rank; ++axis) {
      const std::int64_t span = ramp.steps[static_cast<std::size_t>(axis)] * (dims[axis] - 1);
      (span < 0 ? below : above) += span;
    }
    const auto [low, high] = std::minmax_element(ramp.bases.begin(), ramp.bases.end());
    if (*low + below < std::numeric_limits<std::int32_t>::min() ||
        *high + above > std::numeric_limits<std::int32_t>::max()) {
      return {};
    }
  }
  return {pool, elem, dims, std::move(ramp)};
}

std::int64_t base_at(const Ramp& ramp, std::size_t program) {
  return ramp.bases[ramp.bases.size() == 1 ? 0 : program];
}

}  // namespace

Value ramp_sum(Pool& pool, Elem elem, const Value& a, const Value& b, std::int64_t factor) {
  if (a.ramp() == nullptr && b.ramp() == nullptr) return {};
  const std::optional<Ramp> x = as_ramp(a);
  const std::optional<Ramp> y = as_ramp(b);
  if (!x || !y) return {};
  const Dims dims = joined(a.dims(), b.dims());
  Ramp sum;
  sum.bases.resize(std::max(x->bases.size(), y->bases.size()));
  for (std::size_t p = 0; p < sum.bases.size(); ++p) {
    sum.bases[p] = base_at(*x, p) + factor * base_at(*y, p);
  }
  for (std::size_t axis = 0; axis < sum.steps.size(); ++axis) {
    sum.steps[axis] = x->steps[axis] + factor * y->steps[axis];
  }
  return checked(pool, elem, dims, std::move(sum));
}

Value ramp_product(Pool& pool, const Value& a, const Value& b) {
  const bool is_left = a.ramp() != nullptr;
  const Value& ramp = is_left ? a : b;
  const Value& number = is_left ? b : a;
  if (ramp.ramp() == nullptr || number.ramp() != nullptr || !is_single(number.dims(), 0)) {
    return {};
  }
  const std::optional<Ramp> factor = as_ramp(number);
  if (!factor) return {};
  Ramp product = *ramp.ramp();
  for (std::int64_t& base : product.bases) {
    if (__builtin_mul_overflow(base, factor->bases[0], &base)) return {};
  }
  for (std::int64_t& step : product.steps) {
    if (__builtin_mul_overflow(step, factor->bases[0], &step)) return {};
  }
  return checked(pool, ramp.elem(), ramp.dims(), std::move(product));
}

Value ramp_expanded(Pool& pool, const Value& a, int axis) {
  Dims dims = a.dims();
  dims.insert(axis, 1);
  Ramp ramp = *a.ramp();
  for (auto i = static_cast<std::size_t>(dims.rank - 1); i > static_cast<std::size_t>(axis); --i) {
    ramp.steps[i] = ramp.steps[i - 1];
  }
  ramp.steps[static_cast<std::size_t>(axis)] = 0;
  return {pool, a.elem(), dims, std::move(ramp)};
}

Value ramp_below(Pool& pool, const Value& a, const Value& b) {
  const int last = a.dims().rank - 1;
  if (a.ramp() == nullptr || b.ramp() != nullptr || last != 1 || a.ramp()->steps[1] != 1) {
    return {};
  }
  const std::optional<Ramp> bound = as_ramp(b);
  if (!bound) return {};
  Dims dims = a.dims();
  dims.set(0, std::max(a.dims()[0], b.dims()[0]));
  Value made(pool, Elem::kI1, dims);
  const std::int64_t length = dims[1];
  for (std::int64_t p = 0; p < dims[0]; ++p) {
    const auto program = static_cast<std::size_t>(p);
    const std::int64_t room = base_at(*bound, program) - base_at(*a.ramp(), program);
    const std::int64_t yes = std::clamp(room, std::int64_t{0}, length);
    std::uint8_t* const row = made.as<std::uint8_t>() + p * length;
    std::memset(row, 1, static_cast<std::size_t>(yes));
    std::memset(row + yes, 0, static_cast<std::size_t>(length - yes));
  }
  return made;
}

}  // namespace ferry::vgpu::triton
