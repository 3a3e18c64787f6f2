#include "vgpu/triton/small_floats.h"

#include <algorithm>
#include <limits>

namespace ferry::vgpu::triton {
namespace {

struct Format {
  int fraction_bits;
  int bias;
  int largest;  // the bits of the largest finite number
  bool has_infinity;
};
constexpr Format kE4M3{3, 7, 0x7e, false};
constexpr Format kE5M2{2, 15, 0x7b, true};

const Format& format(Elem elem) { return elem == Elem::kF8E4M3 ? kE4M3 : kE5M2; }

}  // namespace

float from_f8(Elem elem, std::uint8_t bits) {
  const Format& has = format(elem);
  const int magnitude = bits & 0x7f;
  const int exponent = magnitude >> has.fraction_bits;
  const int fraction = magnitude & ((1 << has.fraction_bits) - 1);
  float value = 0;
  if (magnitude > has.largest) {
    const bool infinite = has.has_infinity && magnitude == has.largest + 1;
    value =
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), 1 - has.bias - has.fraction_bits);
  } else {
    value = std::ldexp(static_cast<float>(fraction + (1 << has.fraction_bits)),
                       exponent - has.bias - has.fraction_bits);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

std::uint8_t f8_bits(Elem elem, float value) {
  const Format& has = format(elem);
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  const float magnitude = std::fabs(value);
  if (magnitude >= from_f8(elem, static_cast<std::uint8_t>(has.largest))) {
    return static_cast<std::uint8_t>(sign | has.largest);
  }
  const int exponent =
      magnitude == 0 ? 1 - has.bias : std::max(std::ilogb(magnitude), 1 - has.bias);
  // The number of steps of the smallest fraction at this exponent; nearbyint takes ties to even.
  const auto steps =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, has.fraction_bits - exponent)));
  const int made = ((exponent + has.bias - 1) << has.fraction_bits) + steps;
  return static_cast<std::uint8_t>(sign | made);
}

}  // namespace ferry::vgpu::triton
