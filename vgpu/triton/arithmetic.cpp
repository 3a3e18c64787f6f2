// Arithmetic of whole numbers and of floating point (operations.h).
//
// Whole numbers wrap around. A division by zero gives 0: a GPU gives some number, and C++ would end
// the process; it happens in programs that are not active. Small floating-point types are computed
// as float and rounded.
#include <array>
#include <cmath>
#include <limits>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

// F has `template <class T> static T of(T, T)`. A truth value is 0 or 1 before and after.
template <class F>
void whole2(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, by_whole_number(a.elem(), [&](auto t) {
                       using T = decltype(t);
                       constexpr bool kIsTruth = std::is_same_v<T, std::uint8_t>;
                       return map<T, T, T>(
                           machine.pool(), a.elem(),
                           [](T x, T y) {
                             const T made = F::of(x, y);
                             return kIsTruth ? static_cast<T>(made & 1) : made;
                           },
                           a, machine.operand(op, 1));
                     }));
}

// What an operation does to two numbers of T, computed without signs.
#define FERRY_UNSIGNED(NAME, EXPRESSION)       \
  struct NAME {                                \
    template <class T>                         \
    static T of(T a, T b) {                    \
      using U = Wide<T>;                       \
      const U x = static_cast<Unsigned<T>>(a); \
      const U y = static_cast<Unsigned<T>>(b); \
      return static_cast<T>(EXPRESSION);       \
    }                                          \
  };
#define FERRY_SIGNED(NAME, EXPRESSION)   \
  struct NAME {                          \
    template <class T>                   \
    static T of(T x, T y) {              \
      return static_cast<T>(EXPRESSION); \
    }                                    \
  };

template <class T>
bool shifts_out(T count) {
  return static_cast<Wide<T>>(static_cast<Unsigned<T>>(count)) >= 8 * sizeof(T);
}
template <class T>
bool overflows(T x, T y) {
  return y == 0 ||
         (std::is_signed_v<T> && x == std::numeric_limits<T>::min() && y == static_cast<T>(-1));
}

FERRY_UNSIGNED(Add, x + y)
FERRY_UNSIGNED(Subtract, x - y)
FERRY_UNSIGNED(Multiply, x* y)
FERRY_UNSIGNED(DivideUnsigned, y == 0 ? U{0} : x / y)
FERRY_UNSIGNED(RemainderUnsigned, y == 0 ? U{0} : x % y)
FERRY_UNSIGNED(And, x& y)
FERRY_UNSIGNED(Or, x | y)
FERRY_UNSIGNED(Xor, x ^ y)
FERRY_UNSIGNED(ShiftLeft, shifts_out(b) ? U{0} : x << y)
FERRY_UNSIGNED(ShiftRightUnsigned, shifts_out(b) ? U{0} : x >> y)
FERRY_UNSIGNED(LargerUnsigned, x > y ? x : y)
FERRY_UNSIGNED(SmallerUnsigned, x < y ? x : y)
FERRY_SIGNED(Divide, overflows(x, y) ? (y == 0 ? T{0} : x) : x / y)
FERRY_SIGNED(Remainder, overflows(x, y) ? T{0} : x % y)
FERRY_SIGNED(ShiftRight, shifts_out(y) ? (x < 0 ? T(-1) : T{0}) : x >> y)
FERRY_SIGNED(Larger, x > y ? x : y)
FERRY_SIGNED(Smaller, x < y ? x : y)
#undef FERRY_UNSIGNED
#undef FERRY_SIGNED

// The upper half of a product of unsigned numbers.
void high_product(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  const Value& b = machine.operand(op, 1);
  Pool& pool = machine.pool();
  if (a.elem() == Elem::kI32) {
    return machine.set_result(op,
                              map<std::uint32_t, std::uint32_t, std::uint32_t>(
                                  pool, a.elem(),
                                  [](std::uint32_t x, std::uint32_t y) {
                                    return static_cast<std::uint32_t>((std::uint64_t{x} * y) >> 32);
                                  },
                                  a, b));
  }
  __extension__ using Product = unsigned __int128;
  machine.set_result(op, map<std::uint64_t, std::uint64_t, std::uint64_t>(
                             pool, a.elem(),
                             [](std::uint64_t x, std::uint64_t y) {
                               return static_cast<std::uint64_t>((Product{x} * y) >> 64);
                             },
                             a, b));
}

// Sums and products of ramps stay ramps.
template <class F>
void ramps_or(Machine& machine, const Op& op, std::int64_t factor) {
  const Value& a = machine.operand(op, 0);
  Value made = factor == 0 ? ramp_product(machine.pool(), a, machine.operand(op, 1))
                           : ramp_sum(machine.pool(), a.elem(), a, machine.operand(op, 1), factor);
  made.exists() ? machine.set_result(op, std::move(made)) : whole2<F>(machine, op);
}
void add_whole(Machine& machine, const Op& op) { ramps_or<Add>(machine, op, 1); }
void subtract_whole(Machine& machine, const Op& op) { ramps_or<Subtract>(machine, op, -1); }
void multiply_whole(Machine& machine, const Op& op) { ramps_or<Multiply>(machine, op, 0); }

void absolute(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(
      op, by_whole_number(a.elem(), [&](auto t) {
        using T = decltype(t);
        return map<T, T>(
            machine.pool(), a.elem(),
            [](T x) { return x < 0 ? static_cast<T>(Wide<T>{0} - static_cast<Wide<T>>(x)) : x; },
            a);
      }));
}

void add(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x + y; });
}
void subtract(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x - y; });
}
void multiply(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x * y; });
}
void divide(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x / y; });
}
void remainder(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return std::fmod(x, y); });
}
void negate(Machine& machine, const Op& op) {
  float_map(machine, op, [](auto x) { return -x; });
}
// A number and NaN: `num` gives the number, the others give NaN.
void larger_number(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x >= y || y != y ? x : y; });
}
void smaller_number(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x <= y || y != y ? x : y; });
}
void larger(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x >= y || x != x ? x : y; });
}
void smaller(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return x <= y || x != x ? x : y; });
}

void fused(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, by_float(a.elem(), [&](auto t, auto rounds) {
                       using T = decltype(t);
                       return map<T, T, T, T>(
                           machine.pool(), a.elem(),
                           [=](T x, T y, T z) { return rounds(std::fma(x, y, z)); }, a,
                           machine.operand(op, 1), machine.operand(op, 2));
                     }));
}

// NaN stays NaN if the attribute says so, and becomes the lower bound otherwise.
void clamp(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  const auto found = op.attributes.find("propagateNan");
  const bool keeps_nan = found != op.attributes.end() && found->second == "all";
  machine.set_result(op, by_float(a.elem(), [&](auto t, auto rounds) {
                       using T = decltype(t);
                       return map<T, T, T, T>(
                           machine.pool(), a.elem(),
                           [=](T x, T low, T high) {
                             if (x != x) return keeps_nan ? x : low;
                             return rounds(x < low ? low : (x > high ? high : x));
                           },
                           a, machine.operand(op, 1), machine.operand(op, 2));
                     }));
}

constexpr std::array<Operation, 33> kOperations = {{{"arith.addi", add_whole},
                                                    {"arith.subi", subtract_whole},
                                                    {"arith.muli", multiply_whole},
                                                    {"arith.divsi", whole2<Divide>},
                                                    {"arith.divui", whole2<DivideUnsigned>},
                                                    {"arith.remsi", whole2<Remainder>},
                                                    {"arith.remui", whole2<RemainderUnsigned>},
                                                    {"arith.andi", whole2<And>},
                                                    {"arith.ori", whole2<Or>},
                                                    {"arith.xori", whole2<Xor>},
                                                    {"arith.shli", whole2<ShiftLeft>},
                                                    {"arith.shrsi", whole2<ShiftRight>},
                                                    {"arith.shrui", whole2<ShiftRightUnsigned>},
                                                    {"arith.maxsi", whole2<Larger>},
                                                    {"arith.minsi", whole2<Smaller>},
                                                    {"arith.maxui", whole2<LargerUnsigned>},
                                                    {"arith.minui", whole2<SmallerUnsigned>},
                                                    {"tt.mulhiui", high_product},
                                                    {"math.absi", absolute},
                                                    {"arith.addf", add},
                                                    {"arith.subf", subtract},
                                                    {"arith.mulf", multiply},
                                                    {"arith.divf", divide},
                                                    {"tt.precise_divf", divide},
                                                    {"tt.approx_divf", divide},
                                                    {"arith.remf", remainder},
                                                    {"arith.negf", negate},
                                                    {"arith.maxnumf", larger_number},
                                                    {"arith.minnumf", smaller_number},
                                                    {"arith.maximumf", larger},
                                                    {"arith.minimumf", smaller},
                                                    {"math.fma", fused},
                                                    {"tt.clampf", clamp}}};

}  // namespace

std::span<const Operation> arithmetic() { return kOperations; }

}  // namespace ferry::vgpu::triton
