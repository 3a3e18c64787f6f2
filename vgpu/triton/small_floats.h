// The floating-point types with 16 and 8 bits, as a GPU has them: kF16, kBF16, kF8E4M3 and kF8E5M2.
//
// A kernel's values of these types are floats that one of them can hold. `to_bits` rounds to the
// nearest, ties to even. kF8E4M3 has no infinity and, like kF8E5M2 under Triton, stays at its
// largest number; NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

inline std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}
inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t f16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // Normal numbers: the exponent's bias changes by 112, and 13 bits of the fraction go.
  const std::uint32_t normal =
      (magnitude - (std::uint32_t{112} << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal numbers: an addition of 0.5 moves the fraction to the place where it is rounded.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000;
  std::uint32_t made = magnitude < 0x38800000 ? subnormal : normal;
  made = magnitude >= 0x477ff000 ? 0x7c00 : made;
  made = magnitude > 0x7f800000 ? 0x7e00 : made;
  return static_cast<std::uint16_t>(sign | made);
}
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t normal = (magnitude << 13) + (std::uint32_t{112} << 23);
  const float subnormal = static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24F;
  std::uint32_t made = magnitude < 0x400 ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  made = magnitude >= 0x7c00 ? (magnitude << 13) + (std::uint32_t{224} << 23) : made;
  return std::bit_cast<float>(sign | made);
}

std::uint8_t f8_bits(Elem elem, float value);
float from_f8(Elem elem, std::uint8_t bits);

// Rounds to what the type can hold; kF32 and kF64 stay as they are.
template <Elem kElem>
inline float rounded(float value) {
  if constexpr (kElem == Elem::kBF16) return from_bf16(bf16_bits(value));
  if constexpr (kElem == Elem::kF16) return from_f16(f16_bits(value));
  if constexpr (kElem == Elem::kF8E4M3 || kElem == Elem::kF8E5M2) {
    return from_f8(kElem, f8_bits(kElem, value));
  }
  return value;
}

}  // namespace ferry::vgpu::triton
