// NVIDIA's libdevice: tt.extern_elementwise, whose `symbol` is the name of a function as
// "__nv_expf" (CUDA's "Libdevice User's Guide"). Functions of one number are in functions.cpp.
//
// The name ends with f for floats. With f or d in front of _rn it says the type and the rounding,
// which is the one to the nearest number. Functions that a GPU approximates ("__nv_fast_expf") are
// computed like the precise ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

void next_after(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return std::nextafter(x, y); });
}
void hypotenuse(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto x, auto y) { return std::hypot(x, y); });
}
void angle(Machine& machine, const Op& op) {
  float_map2(machine, op, [](auto y, auto x) { return std::atan2(y, x); });
}

// The second operand is a whole number.
void scale_by_two_to(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  machine.set_result(op, by_float(a.elem(), [&](auto t, auto) {
                       using T = decltype(t);
                       return map<T, T, std::int32_t>(
                           machine.pool(), a.elem(),
                           [](T x, std::int32_t exponent) { return std::ldexp(x, exponent); }, a,
                           machine.operand(op, 1));
                     }));
}

// A whole number from a floating-point one.
template <class F>
void whole_number(Machine& machine, const Op& op, F f) {
  const Value& a = machine.operand(op, 0);
  const Elem to = machine.type(op.results[0]).elem;
  machine.set_result(op, by_float(a.elem(), [&](auto from, auto) {
                       using T = decltype(from);
                       return by_whole_number(to, [&](auto t) {
                         using R = decltype(t);
                         return map<R, T>(
                             machine.pool(), to, [=](T x) { return static_cast<R>(f(x)); }, a);
                       });
                     }));
}
void sign_bit(Machine& machine, const Op& op) {
  whole_number(machine, op, [](auto x) { return std::signbit(x) ? 1 : 0; });
}
void binary_exponent(Machine& machine, const Op& op) {
  whole_number(machine, op, [](auto x) { return std::ilogb(x); });
}
void to_nearest(Machine& machine, const Op& op) {
  whole_number(machine, op, [](auto x) { return std::llrint(x); });
}

// What MLIR has, too.
template <std::size_t kSize>
struct Named {
  char text[kSize];
  consteval Named(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
};
template <Named kName>
void as(Machine& machine, const Op& op) {
  find_operation(kName.text)(machine, op);
}

constexpr std::array<Operation, 21> kFunctions = {{{"pow", as<"math.powf">},
                                                   {"copysign", as<"math.copysign">},
                                                   {"isnan", as<"math.isnan">},
                                                   {"isinf", as<"math.isinf">},
                                                   {"finite", as<"math.isfinite">},
                                                   {"fma", as<"math.fma">},
                                                   {"fma_rn", as<"math.fma">},
                                                   {"div_rn", as<"arith.divf">},
                                                   {"mul_rn", as<"arith.mulf">},
                                                   {"add_rn", as<"arith.addf">},
                                                   {"sub_rn", as<"arith.subf">},
                                                   {"fmod", as<"arith.remf">},
                                                   {"fmax", as<"arith.maxnumf">},
                                                   {"fmin", as<"arith.minnumf">},
                                                   {"nextafter", next_after},
                                                   {"hypot", hypotenuse},
                                                   {"atan2", angle},
                                                   {"ldexp", scale_by_two_to},
                                                   {"signbit", sign_bit},
                                                   {"ilogb", binary_exponent},
                                                   {"llrint", to_nearest}}};

const Operation* find(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name, &Operation::name);
  return found == kFunctions.end() ? nullptr : &*found;
}

bool is_known(std::string_view name) { return find(name) != nullptr || is_function(name); }

// "__nv_fast_expf" -> "exp", "__nv_fmul_rn" -> "mul_rn"; "" if it is not known.
std::string base_name(std::string_view symbol) {
  constexpr std::string_view kRounded = "_rn";
  if (!symbol.starts_with("__nv_")) return "";
  symbol.remove_prefix(5);
  if (symbol.starts_with("fast_")) symbol.remove_prefix(5);
  const bool rounded = symbol.ends_with(kRounded);
  if (rounded) symbol.remove_suffix(kRounded.size());
  const std::string end(rounded ? kRounded : ""), name(symbol);
  std::vector<std::string> names = {name + end};
  const bool asks = name == "isnand" || name == "isinfd" || name == "signbitd";
  if (name.ends_with("f") || asks) names.push_back(name.substr(0, name.size() - 1) + end);
  if (rounded && !name.empty()) names.push_back(name.substr(1) + end);
  const auto found = std::ranges::find_if(names, is_known);
  return found == names.end() ? "" : *found;
}

void call_library(Machine& machine, const Op& op) {
  const std::string name = base_name(op.attributes.at("symbol"));
  if (is_function(name)) return run_function(machine, op, name);
  find(name)->run(machine, op);
}

constexpr std::array<Operation, 1> kOperations = {{{"tt.extern_elementwise", call_library}}};

}  // namespace

bool has_function(std::string_view symbol) { return !base_name(symbol).empty(); }

std::span<const Operation> libdevice() { return kOperations; }

}  // namespace ferry::vgpu::triton
