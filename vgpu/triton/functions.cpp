// Functions of floating-point numbers: MLIR's math dialect and NVIDIA's libdevice (operations.h).
//
// They are computed by the C library, so the last bits differ from a GPU's. Functions that a GPU
// approximates ("__nv_fast_expf") are computed like the precise ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

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

constexpr std::array<Function1, 41> kFunctions = {{
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

void fused(Machine& machine, const Op& op) { find_operation("math.fma")(machine, op); }
void divided(Machine& machine, const Op& op) { find_operation("arith.divf")(machine, op); }
void larger(Machine& machine, const Op& op) { find_operation("arith.maxnumf")(machine, op); }
void smaller(Machine& machine, const Op& op) { find_operation("arith.minnumf")(machine, op); }

// libdevice's functions that are not functions of one number.
constexpr std::array<Operation, 9> kOthers = {{{"pow", power},
                                               {"copysign", copy_sign},
                                               {"isnan", is_nan},
                                               {"isinf", is_infinite},
                                               {"finite", is_finite},
                                               {"fma", fused},
                                               {"fdiv_rn", divided},
                                               {"fmax", larger},
                                               {"fmin", smaller}}};

// "__nv_fast_expf" -> "exp".
std::string_view base_name(std::string_view symbol) {
  if (!symbol.starts_with("__nv_")) return "";
  symbol.remove_prefix(5);
  if (symbol.starts_with("fast_")) symbol.remove_prefix(5);
  if (symbol == "isnand" || symbol == "isinfd") symbol.remove_suffix(1);
  if (find(symbol) != nullptr || symbol == "isinf" || !symbol.ends_with("f")) return symbol;
  return symbol.substr(0, symbol.size() - 1);
}

const Operation* find_other(std::string_view name) {
  const auto* const found = std::find_if(kOthers.begin(), kOthers.end(),
                                         [&](const Operation& each) { return each.name == name; });
  return found == kOthers.end() ? nullptr : found;
}

void call_library(Machine& machine, const Op& op) {
  const std::string_view name = base_name(op.attributes.at("symbol"));
  if (const Function1* const function = find(name)) return apply(machine, op, *function);
  find_other(name)->run(machine, op);
}

constexpr std::array<Operation, 37> kOperations = {{{"math.exp", apply_by_name},
                                                    {"math.exp2", apply_by_name},
                                                    {"math.expm1", apply_by_name},
                                                    {"math.log", apply_by_name},
                                                    {"math.log2", apply_by_name},
                                                    {"math.log10", apply_by_name},
                                                    {"math.log1p", apply_by_name},
                                                    {"math.sqrt", apply_by_name},
                                                    {"math.rsqrt", apply_by_name},
                                                    {"math.cbrt", apply_by_name},
                                                    {"math.sin", apply_by_name},
                                                    {"math.cos", apply_by_name},
                                                    {"math.tan", apply_by_name},
                                                    {"math.asin", apply_by_name},
                                                    {"math.acos", apply_by_name},
                                                    {"math.atan", apply_by_name},
                                                    {"math.sinh", apply_by_name},
                                                    {"math.cosh", apply_by_name},
                                                    {"math.tanh", apply_by_name},
                                                    {"math.asinh", apply_by_name},
                                                    {"math.acosh", apply_by_name},
                                                    {"math.atanh", apply_by_name},
                                                    {"math.erf", apply_by_name},
                                                    {"math.erfc", apply_by_name},
                                                    {"math.floor", apply_by_name},
                                                    {"math.ceil", apply_by_name},
                                                    {"math.trunc", apply_by_name},
                                                    {"math.round", apply_by_name},
                                                    {"math.roundeven", apply_by_name},
                                                    {"math.absf", apply_by_name},
                                                    {"tt.precise_sqrt", apply_by_name},
                                                    {"math.powf", power},
                                                    {"math.copysign", copy_sign},
                                                    {"math.isnan", is_nan},
                                                    {"math.isinf", is_infinite},
                                                    {"math.isfinite", is_finite},
                                                    {"tt.extern_elementwise", call_library}}};

}  // namespace

bool has_function(std::string_view symbol) {
  const std::string_view name = base_name(symbol);
  return find(name) != nullptr || find_other(name) != nullptr;
}

std::span<const Operation> functions() { return kOperations; }

}  // namespace ferry::vgpu::triton
