// Functions of floating-point numbers: MLIR's math dialect, and those of one number that libdevice
// has, too (operations.h).
//
// They are computed by the C library, so the last bits differ from a GPU's.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

// exp(x²) erfc(x). For a large x the factors leave double's range; there it is the first terms of
// the asymptotic series (Abramowitz and Stegun, 7.1.23).
double scaled_erfc(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double inverse = 1 / (2 * x * x);
  return (1 - inverse + 3 * inverse * inverse) / (x * std::sqrt(std::numbers::pi));
}

// Newton's method, from Winitzki's approximation.
double erf_inverse(double y) {
  if (!(std::fabs(y) < 1)) return std::copysign(std::fabs(y) == 1 ? HUGE_VAL : NAN, y);
  const double a = 0.147, log = std::log1p(-y * y), half = 2 / (std::numbers::pi * a) + log / 2;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - log / a) - half), y);
  for (int i = 0; i < 4; ++i) {
    const double sign = y < 0 ? -1 : 1;
    const double error = std::fabs(y) < 0.5 ? std::erf(x) - y  // else by what is left to 1
                                            : sign * (1 - sign * y - std::erfc(sign * x));
    x -= error * std::sqrt(std::numbers::pi) / 2 * std::exp(x * x);
  }
  return x;
}

struct Function1 {
  std::string_view name;
  float (*single)(float);
  double (*twice)(double);
};

// An entry of the table: the function for both types.
#define FERRY_BOTH(NAME, EXPRESSION)                                                               \
  Function1 {                                                                                      \
#NAME, [](float x) -> float { return EXPRESSION; },                                            \
                                                     [](double x) -> double { return EXPRESSION; } \
  }

constexpr std::array<Function1, 45> kFunctions = {{
    FERRY_BOTH(exp, std::exp(x)),
    FERRY_BOTH(exp2, std::exp2(x)),
    FERRY_BOTH(exp10, std::pow(decltype(x)(10), x)),
    FERRY_BOTH(expm1, std::expm1(x)),
    FERRY_BOTH(log, std::log(x)),
    FERRY_BOTH(log2, std::log2(x)),
    FERRY_BOTH(log10, std::log10(x)),
    FERRY_BOTH(log1p, std::log1p(x)),
    FERRY_BOTH(sqrt, std::sqrt(x)),
    FERRY_BOTH(rsqrt, 1 / std::sqrt(x)),
    FERRY_BOTH(cbrt, std::cbrt(x)),
    FERRY_BOTH(sin, std::sin(x)),
    FERRY_BOTH(cos, std::cos(x)),
    FERRY_BOTH(tan, std::tan(x)),
    FERRY_BOTH(asin, std::asin(x)),
    FERRY_BOTH(acos, std::acos(x)),
    FERRY_BOTH(atan, std::atan(x)),
    FERRY_BOTH(sinh, std::sinh(x)),
    FERRY_BOTH(cosh, std::cosh(x)),
    FERRY_BOTH(tanh, std::tanh(x)),
    FERRY_BOTH(asinh, std::asinh(x)),
    FERRY_BOTH(acosh, std::acosh(x)),
    FERRY_BOTH(atanh, std::atanh(x)),
    FERRY_BOTH(erf, std::erf(x)),
    FERRY_BOTH(erfc, std::erfc(x)),
    FERRY_BOTH(lgamma, std::lgamma(x)),
    FERRY_BOTH(tgamma, std::tgamma(x)),
    FERRY_BOTH(floor, std::floor(x)),
    FERRY_BOTH(ceil, std::ceil(x)),
    FERRY_BOTH(trunc, std::trunc(x)),
    FERRY_BOTH(round, std::round(x)),
    FERRY_BOTH(roundeven, std::nearbyint(x)),
    FERRY_BOTH(rint, std::nearbyint(x)),
    FERRY_BOTH(nearbyint, std::nearbyint(x)),
    FERRY_BOTH(fabs, std::fabs(x)),
    FERRY_BOTH(absf, std::fabs(x)),
    FERRY_BOTH(sigmoid, 1 / (1 + std::exp(-x))),
    FERRY_BOTH(normcdf, std::erfc(-x* decltype(x)(0.70710678118654752440)) / 2),
    FERRY_BOTH(erfcx, static_cast<decltype(x)>(scaled_erfc(x))),
    FERRY_BOTH(erfinv, static_cast<decltype(x)>(erf_inverse(x))),
    FERRY_BOTH(cyl_bessel_i0, std::cyl_bessel_i(decltype(x)(0), std::fabs(x))),
    FERRY_BOTH(cyl_bessel_i1, std::copysign(std::cyl_bessel_i(decltype(x)(1), std::fabs(x)), x)),
    FERRY_BOTH(rcp_rn, 1 / x),
    FERRY_BOTH(sqrt_rn, std::sqrt(x)),
    FERRY_BOTH(rsqrt_rn, 1 / std::sqrt(x)),
}};
#undef FERRY_BOTH

const Function1* find(std::string_view name) {
  const auto* const found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                         [&](const Function1& each) { return each.name == name; });
  return found == kFunctions.end() ? nullptr : found;
}

void apply(Machine& machine, const Op& op, const Function1& function) {
  float_map(machine, op, [&](auto x) {
    if constexpr (sizeof x == sizeof(double)) {
      return function.twice(x);
    } else {
      return function.single(x);
    }
  });
}

// "math.exp" and "tt.precise_sqrt"; read_kernel finds only names of the table below.
void apply_by_name(Machine& machine, const Op& op) {
  const std::string_view name = op.name;
  apply(machine, op, *find(name == "tt.precise_sqrt" ? "sqrt" : name.substr(name.find('.') + 1)));
}

void power(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return std::pow(x, y); });
}
void copy_sign(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return std::copysign(x, y); });
}

// Asks something about a number. The result is a truth value or, of libdevice, an i32.
template <class F>
void ask(Machine& machine, const Op& op, F f) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  machine.set_result(op, by_whole_number(to, [&](auto t) {
                       using T = decltype(t);
                       if (a.elem() == Elem::kF64) {
                         return map<T, double>(
                             machine.pool(), to, [=](double x) -> T { return f(x) ? 1 : 0; }, a);
                       }
                       return map<T, float>(
                           machine.pool(), to, [=](float x) -> T { return f(x) ? 1 : 0; }, a);
                     }));
}
void is_nan(Machine& machine, const Op& op) {
  ask(machine, op, [](auto x) { return std::isnan(x); });
}
void is_infinite(Machine& machine, const Op& op) {
  ask(machine, op, [](auto x) { return std::isinf(x); });
}
void is_finite(Machine& machine, const Op& op) {
  ask(machine, op, [](auto x) { return std::isfinite(x); });
}

constexpr std::array<Operation, 36> kOperations = {
    {{"math.exp", apply_by_name},        {"math.exp2", apply_by_name},
     {"math.expm1", apply_by_name},      {"math.log", apply_by_name},
     {"math.log2", apply_by_name},       {"math.log10", apply_by_name},
     {"math.log1p", apply_by_name},      {"math.sqrt", apply_by_name},
     {"math.rsqrt", apply_by_name},      {"math.cbrt", apply_by_name},
     {"math.sin", apply_by_name},        {"math.cos", apply_by_name},
     {"math.tan", apply_by_name},        {"math.asin", apply_by_name},
     {"math.acos", apply_by_name},       {"math.atan", apply_by_name},
     {"math.sinh", apply_by_name},       {"math.cosh", apply_by_name},
     {"math.tanh", apply_by_name},       {"math.asinh", apply_by_name},
     {"math.acosh", apply_by_name},      {"math.atanh", apply_by_name},
     {"math.erf", apply_by_name},        {"math.erfc", apply_by_name},
     {"math.floor", apply_by_name},      {"math.ceil", apply_by_name},
     {"math.trunc", apply_by_name},      {"math.round", apply_by_name},
     {"math.roundeven", apply_by_name},  {"math.absf", apply_by_name},
     {"tt.precise_sqrt", apply_by_name}, {"math.powf", power},
     {"math.copysign", copy_sign},       {"math.isnan", is_nan},
     {"math.isinf", is_infinite},        {"math.isfinite", is_finite}}};

}  // namespace

bool is_function(std::string_view name) { return find(name) != nullptr; }

void run_function(Machine& machine, const Op& op, std::string_view name) {
  apply(machine, op, *find(name));
}

std::span<const Operation> functions() { return kOperations; }

}  // namespace ferry::vgpu::triton
