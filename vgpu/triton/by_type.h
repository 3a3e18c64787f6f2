// Calls a function for the C++ type in which a value's elements are stored (value.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "vgpu/triton/machine.h"
#include "vgpu/triton/small_floats.h"
#include "vgpu/triton/walk.h"

namespace ferry::vgpu::triton {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Unsigned, and wide enough that C++ does not turn it into int.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, Unsigned<T>>;

// Calls f(T()) with a signed type; a truth value is std::uint8_t.
template <class F>
Value by_whole_number(Elem elem, F&& f) {
  switch (elem) {
    case Elem::kI1:
      return f(std::uint8_t());
    case Elem::kI8:
      return f(std::int8_t());
    case Elem::kI16:
      return f(std::int16_t());
    case Elem::kI32:
      return f(std::int32_t());
    default:
      return f(std::int64_t());
  }
}

template <Elem kElem>
struct Rounds {  // to what the type can hold
  template <class T>
  T operator()(T value) const {
    if constexpr (std::is_same_v<T, float>) return rounded<kElem>(value);
    return value;
  }
};

// Calls f(T(), rounds), where `rounds` rounds a result of type T.
template <class F>
Value by_float(Elem elem, F&& f) {
  switch (elem) {
    case Elem::kF64:
      return f(double(), Rounds<Elem::kF64>());
    case Elem::kF16:
      return f(float(), Rounds<Elem::kF16>());
    case Elem::kBF16:
      return f(float(), Rounds<Elem::kBF16>());
    case Elem::kF8E4M3:
      return f(float(), Rounds<Elem::kF8E4M3>());
    case Elem::kF8E5M2:
      return f(float(), Rounds<Elem::kF8E5M2>());
    default:
      return f(float(), Rounds<Elem::kF32>());
  }
}

inline bool is_float(Elem elem) { return elem >= Elem::kF8E4M3 && elem <= Elem::kF64; }

// The result of an operation has these elements, computed from each element of the operand.
template <class F>
void float_map(Machine& machine, const Op& op, F f) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, by_float(a.elem(), [&](auto t, auto rounds) {
                       using T = decltype(t);
                       return map<T, T>(
                           machine.pool(), a.elem(), [=](T x) { return rounds(f(x)); }, a);
                     }));
}
template <class F>
void float_map2(Machine& machine, const Op& op, F f) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, by_float(a.elem(), [&](auto t, auto rounds) {
                       using T = decltype(t);
                       return map<T, T, T>(
                           machine.pool(), a.elem(), [=](T x, T y) { return rounds(f(x, y)); }, a,
                           machine.operand(op, 1));
                     }));
}

}  // namespace ferry::vgpu::triton
