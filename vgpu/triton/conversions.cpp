// Conversions from one type to another (operations.h).
//
// A number that the new type cannot hold becomes the nearest that it can, as on a GPU, and NaN
// becomes 0. Small floating-point types are rounded to the nearest; other ways of rounding are
// rejected.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

void keep(Machine& machine, const Op& op) {  // the same bytes under another type
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, a.with(machine.type(op.results[0]).elem));
}

template <class From, class F>
Value to_whole(Machine& machine, Elem to, const Value& a, F f) {
  return by_whole_number(to, [&](auto t) {
    using T = decltype(t);
    return map<T, From>(
        machine.pool(), to, [=](From x) { return f(t, x); }, a);
  });
}

void extend(Machine& machine, const Op& op, bool is_signed) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  if (is_signed && a.ramp() != nullptr && to == Elem::kI64) {
    return machine.set_result(op, Value(machine.pool(), to, a.dims(), *a.ramp()));
  }
  machine.set_result(
      op, by_whole_number(a.elem(), [&](auto from) {
        using From = decltype(from);
        if (is_signed) {
          return to_whole<From>(machine, to, a, [=](auto t, From x) {
            return static_cast<decltype(t)>(std::is_signed_v<From> ? x : -x);  // true is -1
          });
        }
        return to_whole<From>(machine, to, a, [](auto t, From x) {
          return static_cast<decltype(t)>(static_cast<Unsigned<From>>(x));
        });
      }));
}
void extend_signed(Machine& machine, const Op& op) { extend(machine, op, true); }
void extend_unsigned(Machine& machine, const Op& op) { extend(machine, op, false); }

void truncate(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  machine.set_result(op, by_whole_number(a.elem(), [&](auto from) {
                       using From = decltype(from);
                       return to_whole<From>(machine, to, a, [to](auto t, From x) {
                         return static_cast<decltype(t)>(to == Elem::kI1 ? x & 1 : x);
                       });
                     }));
}

void convert_float(Machine& machine, const Op& op) {
  const auto way = op.attributes.find("rounding");
  if (way != op.attributes.end() && way->second != "rtne") {
    machine.fail(op, "rounds by '" + way->second + "', which the virtual GPU does not run");
  }
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  machine.set_result(
      op, by_float(to, [&](auto t, auto rounds) {
        using T = decltype(t);
        if (a.elem() == Elem::kF64) {
          return map<T, double>(
              machine.pool(), to, [=](double x) { return rounds(static_cast<T>(x)); }, a);
        }
        return map<T, float>(
            machine.pool(), to, [=](float x) { return rounds(static_cast<T>(x)); }, a);
      }));
}

void extend_float(Machine& machine, const Op& op) {
  if (machine.type(op.results[0]).elem == Elem::kF64) return convert_float(machine, op);
  keep(machine, op);  // all smaller ones are stored as float
}

void whole_to_float(Machine& machine, const Op& op, bool is_signed) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  machine.set_result(
      op, by_whole_number(a.elem(), [&](auto from) {
        using From = decltype(from);
        return by_float(to, [&](auto t, auto rounds) {
          using T = decltype(t);
          if (is_signed) {
            return map<T, From>(
                machine.pool(), to,
                [=](From x) { return rounds(static_cast<T>(std::is_signed_v<From> ? x : -x)); }, a);
          }
          return map<T, From>(
              machine.pool(), to,
              [=](From x) { return rounds(static_cast<T>(static_cast<Unsigned<From>>(x))); }, a);
        });
      }));
}
void signed_to_float(Machine& machine, const Op& op) { whole_to_float(machine, op, true); }
void unsigned_to_float(Machine& machine, const Op& op) { whole_to_float(machine, op, false); }

// The whole part, or the nearest number that To can hold.
template <class To, class From>
To whole_part(From x) {
  if (x != x) return 0;
  const From low = static_cast<From>(std::numeric_limits<To>::min());
  const From high = static_cast<From>(std::numeric_limits<To>::max());
  if (x <= low) return std::numeric_limits<To>::min();
  if (x >= high) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

void float_to_whole(Machine& machine, const Op& op, bool is_signed) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  const auto convert = [&](auto from) {
    using From = decltype(from);
    if (is_signed) {
      return to_whole<From>(machine, to, a,
                            [](auto t, From x) { return whole_part<decltype(t)>(x); });
    }
    return to_whole<From>(machine, to, a, [](auto t, From x) {
      return static_cast<decltype(t)>(whole_part<Unsigned<decltype(t)>>(x));
    });
  };
  machine.set_result(op, a.elem() == Elem::kF64 ? convert(double()) : convert(float()));
}
void float_to_signed(Machine& machine, const Op& op) { float_to_whole(machine, op, true); }
void float_to_unsigned(Machine& machine, const Op& op) { float_to_whole(machine, op, false); }

Value to_bits(Pool& pool, const Value& a) {
  switch (a.elem()) {
    case Elem::kBF16:
      return map<std::uint16_t, float>(pool, Elem::kI16, bf16_bits, a);
    case Elem::kF16:
      return map<std::uint16_t, float>(pool, Elem::kI16, f16_bits, a);
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
      return map<std::uint8_t, float>(
          pool, Elem::kI8, [elem = a.elem()](float x) { return f8_bits(elem, x); }, a);
    default:
      return a;
  }
}

Value from_bits(Pool& pool, const Value& bits, Elem to) {
  switch (to) {
    case Elem::kBF16:
      return map<float, std::uint16_t>(pool, to, from_bf16, bits);
    case Elem::kF16:
      return map<float, std::uint16_t>(pool, to, from_f16, bits);
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
      return map<float, std::uint8_t>(
          pool, to, [to](std::uint8_t x) { return from_f8(to, x); }, bits);
    default:
      return bits.with(to);
  }
}

void cast_bits(Machine& machine, const Op& op) {
  machine.set_result(op, from_bits(machine.pool(), to_bits(machine.pool(), machine.operand(op, 0)),
                                   machine.type(op.results[0]).elem));
}

constexpr std::array<Operation, 16> kOperations = {{{"arith.extsi", extend_signed},
                                                    {"arith.extui", extend_unsigned},
                                                    {"arith.index_cast", extend_signed},
                                                    {"arith.index_castui", extend_unsigned},
                                                    {"arith.trunci", truncate},
                                                    {"arith.extf", extend_float},
                                                    {"arith.truncf", convert_float},
                                                    {"tt.fp_to_fp", convert_float},
                                                    {"arith.sitofp", signed_to_float},
                                                    {"arith.uitofp", unsigned_to_float},
                                                    {"arith.fptosi", float_to_signed},
                                                    {"arith.fptoui", float_to_unsigned},
                                                    {"arith.bitcast", cast_bits},
                                                    {"tt.bitcast", cast_bits},
                                                    {"tt.int_to_ptr", keep},
                                                    {"tt.ptr_to_int", keep}}};

}  // namespace

std::span<const Operation> conversions() { return kOperations; }

}  // namespace ferry::vgpu::triton
